//! Mappings: how a policy describes a batch API as it is. How members become a request, and how an answer names their outcomes.
//! No I/O.

mod preset;
mod request;
mod response;
mod template;
mod term;

pub use preset::{Constant, Preset, Sizes, names as preset_names};
pub use request::{BodyFormat, CompiledRequest, HttpMethod, RequestMapping, Sign, is_secret_name};
pub use response::{CompiledResponse, ItemList, Match, Pointers, ResponseMapping, WholeMapping};
pub use template::{MEMBERS, Member, Render, RenderError, Rendered, Template, Text};
pub use term::{Bindings, Term, TermError, Variable};
