//! Expressions over a record: a part of the Common Expression Language (CEL).
//!
//! There are literals (numbers, texts in single or double quotes, `true`, `false`, `null`, lists), fields
//! (`value.after.id`, `headers['name']`), `== != < <= > >= in`, `&& || !`, `+` for numbers and texts,
//! `a ? b : c`, and the functions `size`, `has`, `startsWith`, `endsWith`, `contains` and `matches`.
//! Variables are `key`, `value`, `topic`, `header` and `headers` (the value of the last header of a name),
//! `keySchema` and `valueSchema` (with `name` and `version`).
//!
//! `parse` makes a tree of a text, `evaluate` computes it for a record with the values of `item`.
//! A field of what is null is null; a field that a struct does not have is an error, except inside of
//! `has`. It does not: call anything, loop, or know the time.

mod evaluate;
mod item;
mod parse;

pub(super) use evaluate::evaluate;
pub(super) use item::Item;
pub(super) use parse::Expression;
