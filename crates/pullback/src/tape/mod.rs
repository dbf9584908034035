//! Records of what ran, and the walk backward through them. Knows no particular operation.

mod context;
mod leaf;
mod level;
mod record;
mod walk;

pub(crate) use context::{
    Scope, detects_anomaly, enters, forgets, forgetting, in_strict_mode, is_ambient, note_saved,
    outside_of_scopes, refuses_promotion, resumed, saved_by, standing_in, suspended, suspended_all,
};
pub use context::{detect_anomaly, enable_grad, no_grad, strict, strict_dtypes};
pub use leaf::Hook;
pub(crate) use leaf::Leaf;
pub(crate) use level::{AMBIENT, Deps, Level};
pub(crate) use record::{At, Cotangents, Input, Record, Uses, next_id};
pub(crate) use walk::{Seeds, Walk, leaf_cotangents, pull, pull_along, pull_through};
