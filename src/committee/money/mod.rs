//! What calls may cost: the bounds of their input, the panel that fits under the cap, and the quote
//! before a run. It makes no call; the journal reserves and settles the money.

pub(super) mod budget;
pub(super) mod check_cost;
pub(super) mod fitting;
pub(super) mod trim;
pub(super) mod price;
