//! Templates: JSON whose texts may hold terms between `${` and `}`.

mod compile;
mod write;
