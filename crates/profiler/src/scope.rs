//! Ranges that a program names.

use cresset_dispatch::observe::{self, Call, Kind, Name, Span};

/// Names what happens until the guard drops; shown as `user_annotation` in traces.
///
/// With no session alive this costs about a nanosecond and allocates nothing. The range
/// ends however the scope is left: by falling off its end, by `?`, or by a panic.
///
/// ```
/// let _scope = cresset_profiler::record_function("load batch");
/// let sum = cresset_profiler::record_function("sum").run(|| 1 + 1);
/// # assert_eq!(sum, 2);
/// ```
#[inline]
pub fn record_function(name: &str) -> Scope {
    Scope { _span: observe::span(&Range(name)) }
}

/// Guard of [`record_function`].
///
/// ```
/// use cresset_profiler::{Profiler, Scope, record_function};
/// fn timed(name: &str) -> Scope {
///     record_function(name)
/// }
/// let (_, profiler) = Profiler::builder().run(|_| drop(timed("until dropped")))?;
/// assert_eq!(profiler.events()?.next().unwrap().name(), "until dropped");
/// # Ok::<(), cresset_profiler::Error>(())
/// ```
#[must_use = "the range ends when the guard drops"]
pub struct Scope {
    _span: Option<Span>,
}

impl Scope {
    /// Runs `body` inside the range.
    ///
    /// ```
    /// # use cresset_profiler::record_function;
    /// let parsed = record_function("parse").run(|| "7".parse::<u32>());
    /// assert_eq!(parsed, Ok(7));
    /// ```
    #[inline]
    pub fn run<R>(self, body: impl FnOnce() -> R) -> R {
        body()
    }

    /// A range that nobody sees.
    #[doc(hidden)]
    pub const fn unseen() -> Scope {
        Scope { _span: None }
    }
}

/// Like the function of the same name, with a formatted name; formats only while a
/// session is alive.
///
/// ```
/// for layer in 0..2 {
///     let _scope = cresset_profiler::record_function!("layer {layer}");
/// }
/// ```
#[macro_export]
macro_rules! record_function {
    ($($name:tt)*) => {
        if $crate::is_watched() { $crate::record_function(&::std::format!($($name)*)) } else { $crate::Scope::unseen() }
    };
}

struct Range<'a>(&'a str);

impl Call for Range<'_> {
    fn name(&self) -> Name<'_> {
        Name::Borrowed(self.0)
    }

    fn kind(&self) -> Kind {
        Kind::Scope
    }
}
