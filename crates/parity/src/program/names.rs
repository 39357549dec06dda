//! What the tensors of a program are called. Each name has a number, by which calls refer to it.

use super::cursor::{Cursor, Read};

#[derive(Clone, Debug, Default)]
pub(super) struct Names(Vec<String>);

impl Names {
    /// The number of a name that is given a tensor here.
    pub(super) fn define(&mut self, at: &Cursor<'_>) -> Read<usize> {
        let name = at.text()?;
        if name.is_empty() || name.contains('.') {
            return at.fault("a tensor's name is not empty and has no dot");
        }
        Ok(self.number(name).unwrap_or_else(|| {
            self.0.push(name.to_owned());
            self.0.len() - 1
        }))
    }

    /// One name, or a list of names, that are given tensors here.
    pub(super) fn define_all(&mut self, at: Option<Cursor<'_>>) -> Read<Vec<usize>> {
        match at {
            None => Ok(Vec::new()),
            Some(at) if at.json.is_array() => at.list()?.iter().map(|one| self.define(one)).collect(),
            Some(at) => Ok(vec![self.define(&at)?]),
        }
    }

    /// The number of a name that has a tensor already.
    pub(super) fn known(&self, at: &Cursor<'_>) -> Read<usize> {
        let name = at.text()?;
        match self.number(name) {
            Some(number) => Ok(number),
            None => {
                at.fault(format_args!("no tensor is called {name:?} here; there are {}", self.0.join(", ")))
            }
        }
    }

    /// The numbers of a name, or of a list of names.
    pub(super) fn known_all(&self, at: &Cursor<'_>) -> Read<Vec<usize>> {
        if at.json.is_array() {
            return at.list()?.iter().map(|one| self.known(one)).collect();
        }
        Ok(vec![self.known(at)?])
    }

    pub(super) fn number(&self, name: &str) -> Option<usize> {
        self.0.iter().position(|known| known == name)
    }
}
