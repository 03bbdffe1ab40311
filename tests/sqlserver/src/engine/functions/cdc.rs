//! Scalar functions of change data capture that need no query.

use super::Call;
use crate::engine::cdc::capture::Capture;
use crate::engine::fault::SqlError;
use crate::engine::kinds::text::same_name;
use crate::engine::log::Lsn;
use crate::value::SqlValue;

use std::sync::Arc;

fn lsn(arguments: &[SqlValue]) -> Option<Lsn> {
    match arguments.first() {
        Some(SqlValue::Bytes(bytes)) => {
            let mut lsn = [0; 10];
            let length = bytes.len().min(10);
            lsn[..length].copy_from_slice(&bytes[..length]);
            Some(Lsn(lsn))
        }
        _ => None,
    }
}

/// "sys.fn_cdc_increment_lsn": the next number.
pub(crate) fn increment(_: &Call<'_>, arguments: &[SqlValue]) -> Result<SqlValue, SqlError> {
    Ok(lsn(arguments).map_or(SqlValue::Null, |l| SqlValue::Bytes(l.moved(1).0.to_vec())))
}

/// "sys.fn_cdc_decrement_lsn": the number before.
pub(crate) fn decrement(_: &Call<'_>, arguments: &[SqlValue]) -> Result<SqlValue, SqlError> {
    Ok(lsn(arguments).map_or(SqlValue::Null, |l| SqlValue::Bytes(l.moved(-1).0.to_vec())))
}

fn capture(call: &Call<'_>, name: &SqlValue) -> Option<Arc<Capture>> {
    let SqlValue::Text(name) = name else { return None };
    let world = call.engine.world();
    let database = match call.note(0) {
        "" => world.database_by_id(call.session.database()),
        database => world.database(database),
    }?;
    database.captures().iter().find(|c| same_name(&c.name, name)).cloned()
}

/// "sys.fn_cdc_get_min_lsn": ten zero bytes for an instance that does not exist.
pub(crate) fn min_lsn(call: &Call<'_>, arguments: &[SqlValue]) -> Result<SqlValue, SqlError> {
    Ok(SqlValue::Bytes(capture(call, &arguments[0]).map_or(vec![0; 10], |c| c.start_lsn.0.to_vec())))
}

/// "sys.fn_cdc_get_column_ordinal".
pub(crate) fn column_ordinal(call: &Call<'_>, arguments: &[SqlValue]) -> Result<SqlValue, SqlError> {
    let SqlValue::Text(column) = &arguments[1] else { return Ok(SqlValue::Null) };
    let ordinal = capture(call, &arguments[0]).and_then(|c| c.columns.iter().position(|k| same_name(&k.name, column)));
    Ok(ordinal.map_or(SqlValue::Null, |at| SqlValue::Int(at as i64 + 1)))
}

/// "sys.fn_cdc_is_bit_set": bit 1 is the lowest bit of the last byte.
pub(crate) fn is_bit_set(_: &Call<'_>, arguments: &[SqlValue]) -> Result<SqlValue, SqlError> {
    let (SqlValue::Int(position), SqlValue::Bytes(mask)) = (&arguments[0], &arguments[1]) else {
        return Ok(SqlValue::Null);
    };
    Ok(SqlValue::Bit(is_set(*position, mask)))
}

fn is_set(position: i64, mask: &[u8]) -> bool {
    usize::try_from(position - 1)
        .ok()
        .and_then(|bit| mask.len().checked_sub(1 + bit / 8).map(|byte| mask[byte] >> (bit % 8) & 1 == 1))
        .unwrap_or(false)
}

/// "sys.fn_cdc_has_column_changed".
pub(crate) fn has_column_changed(call: &Call<'_>, arguments: &[SqlValue]) -> Result<SqlValue, SqlError> {
    let SqlValue::Bytes(mask) = &arguments[2] else { return Ok(SqlValue::Null) };
    Ok(match column_ordinal(call, arguments)? {
        SqlValue::Int(ordinal) => SqlValue::Bit(is_set(ordinal, mask)),
        _ => SqlValue::Null,
    })
}
