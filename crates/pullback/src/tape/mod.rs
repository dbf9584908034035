//! Records of what ran, and the walk backward through them. Knows no particular operation.

mod context;
mod leaf;
mod level;
mod record;
mod walk;

pub(crate) use context::{
    caller, detects_anomaly, forgets, forgetting, in_strict_mode, note_saved, resumed, saved_by, suspended,
    suspended_all, with_caller,
};
pub use context::{detect_anomaly, enable_grad, no_grad, strict};
pub use leaf::Hook;
pub(crate) use leaf::Leaf;
pub(crate) use level::{AMBIENT, Deps, Level};
pub(crate) use record::{At, Cotangents, Input, Record, Uses, next_id};
pub(crate) use walk::{Seeds, Walk, pull, pull_along};
