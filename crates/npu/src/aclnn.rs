//! Operators as plain functions, one per line of the table in `cresset-acl`.
//!
//! Each `aclnnX` is a pair: `aclnnXGetWorkspaceSize` checks and plans a call, `aclnnX` puts
//! the plan into a stream. The protocol is written once, here: describe the arguments, plan,
//! find workspace, launch, destroy the descriptions. A function returns when the work is
//! queued. Its tensors may be dropped then, since their memory is reused in stream order.
//!
//! Kernels of operators of your own are made of these, as those here are. Outputs are the last
//! arguments, and exist already.
//!
//! ```
//! use cresset_npu::{Library, aclnn, device, init};
//! use cresset_tensor::{Output, Spec, Tensor};
//! # init(Library::embedded(cresset_npu_sim::NAME, cresset_npu_sim::symbol))?;
//! let x = Tensor::new([1.0f32, 4.0])?.to(device(0))?;
//! let out = Tensor::allocate(Spec::like(&x), x.device())?;
//! aclnn::sqrt(&x, &out)?;
//! assert_eq!(out.to_vec::<f32>()?, [1.0, 2.0]);
//! # Ok::<(), cresset_tensor::Error>(())
//! ```

use crate::activity::launching;
use crate::allocator::{self, Block};
use crate::descriptor::{Argument, Site};
use crate::launches::launched;
use crate::status::{check, keep};
use crate::sys;
use cresset_acl::class::{self, Class};
use cresset_acl::operators;
use cresset_acl::types::{Executor, RunOperator, Status};
use cresset_dispatch::activity::Work;
use cresset_tensor::Result;
use std::ffi::c_void;
use std::ptr;
use std::sync::OnceLock;

macro_rules! functions {
    ($($name:ident = $symbol:ident($($argument:ident: $class:ident),* $(,)?);)*) => {$(
        #[doc = concat!("`", stringify!($symbol), "` on the stream that this thread fills.")]
        ///
        /// # Errors
        /// If a tensor is elsewhere, the library lacks the function, or it refuses what it is given.
        #[allow(clippy::too_many_arguments, reason = "as many as the operator has")]
        pub fn $name($($argument: <class::$class as Argument>::Given<'_>),*) -> Result<()> {
            type Plan = unsafe extern "C" fn(
                $(<class::$class as Class>::Raw,)*
                *mut u64,
                *mut *mut Executor,
            ) -> Status;
            static PAIR: Pair<Plan> =
                Pair::new(concat!(stringify!($symbol), "GetWorkspaceSize"), stringify!($symbol));
            // SAFETY: the table has the signature that the vendor's headers declare.
            let (plan, run) = unsafe { PAIR.resolve() }?;
            let mut site = Site::default();
            $(let $argument = <class::$class as Argument>::describe($argument, &mut site)?;)*
            let (mut workspace, mut executor) = (0, ptr::null_mut());
            // SAFETY: the descriptions live to the end of this function; the results have places.
            let code = unsafe {
                plan($(<class::$class as Argument>::raw(&$argument),)* &mut workspace, &mut executor)
            };
            check(PAIR.plan, code)?;
            launch(PAIR.run, run, workspace as usize, executor, &site)
        }
    )*};
}

operators!(functions);

/// The two functions of an operator, found when first used.
struct Pair<P> {
    plan: &'static str,
    run: &'static str,
    found: OnceLock<(P, RunOperator)>,
}

impl<P: Copy> Pair<P> {
    const fn new(plan: &'static str, run: &'static str) -> Pair<P> {
        Pair { plan, run, found: OnceLock::new() }
    }

    /// # Safety
    /// `P` has the C signature of `plan`.
    #[inline]
    unsafe fn resolve(&self) -> Result<(P, RunOperator)> {
        match self.found.get() {
            Some(found) => Ok(*found),
            // SAFETY: by the caller's promise.
            None => unsafe { self.look_up() },
        }
    }

    /// # Safety
    /// As [`resolve`](Pair::resolve).
    #[cold]
    unsafe fn look_up(&self) -> Result<(P, RunOperator)> {
        let origin = &sys::loaded().origin;
        // SAFETY: by the caller's promise; the second function of every pair is of one type.
        let found = unsafe { (origin.function(self.plan)?, origin.function(self.run)?) };
        Ok(*self.found.get_or_init(|| found))
    }
}

/// Runs a plan, which is used up, also when it fails.
fn launch(
    function: &'static str,
    run: RunOperator,
    bytes: usize,
    executor: *mut Executor,
    site: &Site,
) -> Result<()> {
    let stream = site.stream();
    let workspace = match bytes {
        0 => None,
        bytes => {
            Some(allocator::of(stream.device_index()).allocate(bytes).inspect_err(|_| discard(executor))?)
        }
    };
    let address = workspace.as_ref().map_or(ptr::null_mut(), |block: &Block| block.address() as *mut c_void);
    // SAFETY: the plan asked for this workspace and made this executor, which runs once.
    let launch = || unsafe { run(address, bytes as u64, executor, stream.raw()) };
    check(function, launching(function, Work::Kernel, 0, stream, launch))?;
    Ok(launched(function, stream)?)
}

/// Destroys a plan that will not run.
fn discard(executor: *mut Executor) {
    // SAFETY: made by a plan function, not run.
    keep(check("aclDestroyAclOpExecutor", unsafe {
        (sys::loaded().object.aclDestroyAclOpExecutor)(executor)
    }));
}
