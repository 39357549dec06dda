//! Walks two forests side by side and collects what differs.

use super::align::{Pair, align};
use super::flops::flops;
use super::forest::{Forest, Node};
use super::report::{Column, Difference, Level, What};
use serde_json::Value;
use std::collections::{HashMap, HashSet};

/// Two forests, and what was found so far.
pub(super) struct Comparison<'a> {
    pub(super) theirs: &'a Forest<'a>,
    pub(super) ours: &'a Forest<'a>,
    pub(super) levels: Vec<Level>,
    pub(super) differences: Vec<Difference>,
    /// Calls of theirs and the same calls of ours, and whether they stand in the same place.
    pairs: Vec<(usize, usize)>,
    in_place: usize,
    in_order: usize,
    /// Calls of theirs and of ours that lie in another call than they do on the other side.
    displaced: [HashSet<usize>; 2],
}

impl<'a> Comparison<'a> {
    pub(super) fn of(theirs: &'a Forest<'a>, ours: &'a Forest<'a>) -> Comparison<'a> {
        let mut comparison = Comparison {
            theirs,
            ours,
            levels: Vec::new(),
            differences: Vec::new(),
            pairs: Vec::new(),
            in_place: 0,
            in_order: 0,
            displaced: Default::default(),
        };
        comparison.walk();
        comparison.pairs.sort_unstable();
        comparison
    }

    /// Goes through all levels; those of calls that were found follow.
    fn walk(&mut self) {
        let threads = self.theirs.threads.len().max(self.ours.threads.len());
        let roots = |forest: &Forest<'_>, i: usize| forest.threads.get(i).cloned().unwrap_or_default();
        let beside = same_threads(self.theirs, self.ours);
        let mut next: Vec<(Vec<usize>, Vec<usize>)> =
            (0..threads).rev().map(|i| (roots(self.theirs, i), roots(self.ours, beside[i]))).collect();
        while let Some((theirs, ours)) = next.pop() {
            if theirs.is_empty() && ours.is_empty() {
                continue;
            }
            let pairs = align((self.theirs, &theirs), (self.ours, &ours));
            self.levels.push(Level { pairs: pairs.clone() });
            self.level(&pairs, &mut next);
        }
    }

    fn level(&mut self, pairs: &[Pair], next: &mut Vec<(Vec<usize>, Vec<usize>)>) {
        let level = self.levels.len() - 1;
        let mut found = Vec::new();
        for &pair in pairs {
            if let (Some(a), Some(b)) = pair {
                self.in_place += 1;
                self.in_order += 1;
                found.push((a, b));
            }
        }
        let mut left = self.moved(level, pairs, &mut found);
        self.nested_otherwise(level, &mut left, next);
        for (place, pair) in left.into_iter().flatten() {
            let what = if pair.0.is_some() { What::Missing } else { What::Extra };
            self.differ(what, (level, place), pair, String::new());
        }
        // Depth first, in order: the last pushed is looked at first.
        for &(a, b) in found.iter().rev() {
            next.push((self.theirs.nodes[a].children.clone(), self.ours.nodes[b].children.clone()));
        }
        self.pairs.extend(found);
    }

    /// Calls that both have at this level, but in another order. What is left comes back in runs
    /// that lie between calls that were found.
    fn moved(
        &mut self,
        level: usize,
        pairs: &[Pair],
        found: &mut Vec<(usize, usize)>,
    ) -> Vec<Vec<(usize, Pair)>> {
        let mut free: HashMap<&str, Vec<usize>> = HashMap::new();
        for pair in pairs.iter().rev() {
            if let (None, Some(b)) = *pair {
                free.entry(self.ours.nodes[b].name).or_default().push(b);
            }
        }
        let mut taken = HashSet::new();
        let mut runs = vec![Vec::new()];
        for (place, &pair) in pairs.iter().enumerate() {
            match pair {
                (Some(a), None) => match free.get_mut(self.theirs.nodes[a].name).and_then(Vec::pop) {
                    Some(b) => {
                        taken.insert(b);
                        self.in_place += 1;
                        found.push((a, b));
                        self.differ(What::Order, (level, place), (Some(a), Some(b)), String::new());
                    }
                    None => runs.last_mut().into_iter().for_each(|run| run.push((place, pair))),
                },
                (None, Some(_)) => runs.last_mut().into_iter().for_each(|run| run.push((place, pair))),
                _ => runs.push(Vec::new()),
            }
        }
        for run in &mut runs {
            run.retain(|(_, (a, b))| a.is_some() || b.is_none_or(|b| !taken.contains(&b)));
        }
        runs
    }

    /// A call that only one has, around calls that the other has at this level.
    fn nested_otherwise(
        &mut self,
        level: usize,
        runs: &mut [Vec<(usize, Pair)>],
        next: &mut Vec<(Vec<usize>, Vec<usize>)>,
    ) {
        for run in runs.iter_mut().filter(|run| run.len() > 1) {
            for (place, pair) in run.clone() {
                let (is_theirs, inside) = match pair {
                    (Some(a), _) => (true, &self.theirs.nodes[a].children),
                    (_, Some(b)) => (false, &self.ours.nodes[b].children),
                    _ => continue,
                };
                let side = |pair: Pair| if is_theirs { pair.1 } else { pair.0 };
                let beside: Vec<usize> = run.iter().filter_map(|&(_, pair)| side(pair)).collect();
                let same = if is_theirs {
                    align((self.theirs, inside), (self.ours, &beside))
                } else {
                    align((self.theirs, &beside), (self.ours, inside))
                };
                let met: HashSet<usize> = same
                    .iter()
                    .filter(|(a, b)| a.is_some() && b.is_some())
                    .filter_map(|&pair| side(pair))
                    .collect();
                if met.is_empty() || met.len() * 2 < inside.len() {
                    continue;
                }
                let beside: Vec<usize> = beside.into_iter().filter(|node| met.contains(node)).collect();
                next.push(if is_theirs { (inside.clone(), beside) } else { (beside, inside.clone()) });
                self.in_place = self.in_place.saturating_sub(met.len());
                self.displaced[usize::from(is_theirs)].extend(met.iter().copied());
                let who =
                    if is_theirs { "only theirs has it around them" } else { "only ours has it around them" };
                self.differ(What::Nesting, (level, place), pair, who.to_owned());
                run.retain(|&(at, pair)| at != place && side(pair).is_none_or(|node| !met.contains(&node)));
            }
        }
    }

    fn differ(&mut self, what: What, place: (usize, usize), (theirs, ours): Pair, detail: String) {
        self.differences.push(Difference { what, place: Some(place), theirs, ours, detail });
    }

    /// How much of each column is the same. Columns that neither trace has are left out.
    pub(super) fn columns(&mut self) -> Vec<Column> {
        let (theirs, ours, found) = (self.theirs.nodes.len(), self.ours.nodes.len(), self.pairs.len());
        let mut columns = vec![
            Column { name: "events", same: 2 * found, of: theirs + ours },
            Column { name: "nesting", same: self.in_place.min(found), of: found },
            Column { name: "order", same: self.in_order.min(found), of: found },
        ];
        columns.extend(self.lists());
        columns.extend([self.sequences(), self.arrows()]);
        columns.extend(self.memory());
        columns.extend(self.flops());
        columns.insert(0, self.every_column());
        columns.retain(|column| column.of > 0);
        columns
    }

    /// Calls that are the same in all that was compared before.
    fn every_column(&self) -> Column {
        let mut differ: [HashSet<usize>; 2] = self.displaced.clone();
        for difference in &self.differences {
            differ[0].extend(difference.theirs);
            differ[1].extend(difference.ours);
        }
        let is_same = |(a, b): &&(usize, usize)| !differ[0].contains(a) && !differ[1].contains(b);
        let same = self.pairs.iter().filter(is_same).count();
        Column { name: "every column", same: 2 * same, of: self.theirs.nodes.len() + self.ours.nodes.len() }
    }

    /// Compares what both calls of every pair have; a column of those that either has.
    fn column<T: PartialEq>(
        &mut self,
        (name, what): (&'static str, What),
        get: impl Fn(&Node<'_>, &Node<'_>) -> Option<(T, T)>,
        show: impl Fn(&T) -> String,
    ) -> Column {
        let mut column = Column { name, same: 0, of: 0 };
        for &(a, b) in &self.pairs {
            let Some((left, right)) = get(&self.theirs.nodes[a], &self.ours.nodes[b]) else { continue };
            column.of += 1;
            if left == right {
                column.same += 1;
            } else {
                let detail = format!("theirs {}, ours {}", show(&left), show(&right));
                self.differences.push(Difference {
                    what,
                    place: None,
                    theirs: Some(a),
                    ours: Some(b),
                    detail,
                });
            }
        }
        column
    }

    fn lists(&mut self) -> Vec<Column> {
        type Get = for<'n> fn(&'n Node<'_>) -> &'n Option<Value>;
        let lists: [(&'static str, What, Get); 3] = [
            ("Input Dims", What::Dims, |node| &node.dims),
            ("Input type", What::Types, |node| &node.types),
            ("Concrete Inputs", What::Concrete, |node| &node.concrete),
        ];
        let mut columns = Vec::new();
        for (name, what, get) in lists {
            // A trace without shapes says nothing about them.
            if ![self.theirs, self.ours]
                .iter()
                .all(|forest| forest.nodes.iter().any(|node| get(node).is_some()))
            {
                continue;
            }
            let show = |list: &Option<Value>| list.as_ref().map_or("none".to_owned(), Value::to_string);
            let both = |a: &Node<'_>, b: &Node<'_>| {
                (get(a).is_some() || get(b).is_some()).then(|| (get(a).clone(), get(b).clone()))
            };
            columns.push(self.column((name, what), both, show));
        }
        columns
    }

    /// Numbers of derivatives differ from run to run; which calls share one does not.
    fn sequences(&mut self) -> Column {
        let mut column = Column { name: "Sequence number", same: 0, of: 0 };
        let (mut there, mut back) = (HashMap::new(), HashMap::new());
        for &(a, b) in &self.pairs {
            let (left, right) = (self.theirs.nodes[a].sequence, self.ours.nodes[b].sequence);
            let detail = match (left, right) {
                (None, None) => continue,
                (Some((x, _)), None) => format!("theirs {x}, ours none"),
                (None, Some((y, _))) => format!("theirs none, ours {y}"),
                (Some((x, is_backward)), Some((y, too))) => {
                    let (known, other) = (*there.entry(x).or_insert(y), *back.entry(y).or_insert(x));
                    if known == y && other == x && is_backward == too {
                        column.of += 1;
                        column.same += 1;
                        continue;
                    }
                    format!("theirs {x} was ours {known} before, and is {y} here")
                }
            };
            column.of += 1;
            self.differences.push(Difference {
                what: What::Sequence,
                place: None,
                theirs: Some(a),
                ours: Some(b),
                detail,
            });
        }
        column
    }

    fn arrows(&mut self) -> Column {
        let images: HashMap<usize, usize> = self.pairs.iter().copied().collect();
        let ours: HashSet<(usize, usize)> = self.ours.arrows.iter().copied().collect();
        let mut met = HashSet::new();
        let mut missing = Vec::new();
        for &(from, to) in &self.theirs.arrows {
            let image = images.get(&from).copied().zip(images.get(&to).copied());
            match image.filter(|image| ours.contains(image)) {
                Some(image) => drop(met.insert(image)),
                None => missing.push((from, to)),
            }
        }
        let same = met.len();
        for (from, to) in missing {
            let detail =
                format!("only theirs: {} -> {}", self.theirs.nodes[from].name, self.theirs.nodes[to].name);
            let ours = images.get(&to).copied();
            self.differences.push(Difference {
                what: What::Flow,
                place: None,
                theirs: Some(to),
                ours,
                detail,
            });
        }
        let extra: Vec<(usize, usize)> =
            self.ours.arrows.iter().copied().filter(|arrow| !met.contains(arrow)).collect();
        for &(from, to) in &extra {
            let detail = format!("only ours: {} -> {}", self.ours.nodes[from].name, self.ours.nodes[to].name);
            self.differences.push(Difference {
                what: What::Flow,
                place: None,
                theirs: None,
                ours: Some(to),
                detail,
            });
        }
        Column { name: "forward to backward", same, of: self.theirs.arrows.len() + extra.len() }
    }

    fn memory(&mut self) -> Vec<Column> {
        if !(self.theirs.has_memory && self.ours.has_memory) {
            return Vec::new();
        }
        type Get = fn(&Node<'_>) -> i64;
        let columns: [(&'static str, What, Get); 2] = [
            ("bytes taken", What::Taken, |node| node.taken),
            ("bytes given back", What::GivenBack, |node| node.given_back),
        ];
        let mut found = Vec::new();
        for (name, what, get) in columns {
            let both = |a: &Node<'_>, b: &Node<'_>| (get(a) != 0 || get(b) != 0).then(|| (get(a), get(b)));
            found.push(self.column((name, what), both, i64::to_string));
        }
        found
    }

    /// torch's traces do not have them; its formulas and the shapes tell what it counts.
    fn flops(&mut self) -> Option<Column> {
        self.ours.nodes.iter().find(|node| node.flops.is_some())?;
        let both = |a: &Node<'_>, b: &Node<'_>| {
            let (left, right) = (a.flops.or_else(|| flops(a))?, b.flops.unwrap_or(0));
            Some((left, right))
        };
        Some(self.column(("FLOPs", What::Flops), both, u64::to_string))
    }
}

/// Which thread of ours is which of theirs: the one that has most names of outer calls in common, for
/// which of several begins first differs from run to run.
fn same_threads(theirs: &Forest<'_>, ours: &Forest<'_>) -> Vec<usize> {
    let mut left: Vec<usize> = (0..theirs.threads.len().max(ours.threads.len())).collect();
    if left.len() < 2 {
        return left;
    }
    let names = |forest: &Forest<'_>, thread: usize| -> HashMap<String, usize> {
        let mut names = HashMap::new();
        for &root in forest.threads.get(thread).into_iter().flatten() {
            *names.entry(forest.nodes[root].name.to_owned()).or_default() += 1;
        }
        names
    };
    let ours: Vec<HashMap<String, usize>> = left.iter().map(|&thread| names(ours, thread)).collect();
    let mut beside = Vec::with_capacity(left.len());
    for thread in 0..left.len() {
        let wanted = names(theirs, thread);
        let common = |candidate: usize| -> usize {
            wanted
                .iter()
                .map(|(name, count)| ours[candidate].get(name).copied().unwrap_or(0).min(*count))
                .sum()
        };
        let best = (0..left.len()).max_by_key(|&place| (common(left[place]), std::cmp::Reverse(place)));
        beside.extend(best.map(|place| left.remove(place)));
    }
    beside
}
