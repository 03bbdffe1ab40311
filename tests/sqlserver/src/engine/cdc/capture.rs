//! A capture instance.

use crate::engine::log::Lsn;
use crate::types::SqlType;
use crate::value::SqlValue;

#[derive(Debug, Clone)]
pub(crate) struct Capture {
    pub(crate) name: String,
    /// Object ids of the source table and of the change table.
    pub(crate) source: i32,
    pub(crate) object: i32,
    /// In the order of their ordinals, from 1.
    pub(crate) columns: Vec<Captured>,
    /// Ids of the source's columns of the index that tells rows apart.
    pub(crate) key: Vec<i32>,
    pub(crate) index_name: Option<String>,
    pub(crate) start_lsn: Lsn,
    pub(crate) net_changes: bool,
    pub(crate) role: Option<String>,
    pub(crate) created: SqlValue,
}

#[derive(Debug, Clone)]
pub(crate) struct Captured {
    /// `column_id` in the source table.
    pub(crate) id: i32,
    pub(crate) name: String,
    pub(crate) kind: SqlType,
    pub(crate) computed: bool,
}

impl Capture {
    pub(crate) fn table_name(&self) -> String {
        format!("{}_CT", self.name)
    }

    /// Names of the key's columns that are captured.
    pub(crate) fn key_names(&self) -> impl Iterator<Item = String> {
        self.key.iter().filter_map(|id| self.columns.iter().find(|c| c.id == *id).map(|c| c.name.clone()))
    }

    /// A mask with these bits; bit n is column n+1, the last byte has the first eight columns.
    pub(crate) fn mask(&self, is_set: impl Fn(usize) -> bool) -> Vec<u8> {
        let mut mask = vec![0; self.columns.len().div_ceil(8)];
        let length = mask.len();
        for at in (0..self.columns.len()).filter(|at| is_set(*at)) {
            mask[length - 1 - at / 8] |= 1 << (at % 8);
        }
        mask
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t_35_masks_have_the_first_columns_in_the_last_byte() {
        for count in [1, 8, 9, 17] {
            let column = |id| Captured { id, name: format!("c{id}"), kind: SqlType::Int, computed: false };
            let capture = Capture {
                name: "dbo_t".into(),
                source: 1,
                object: 2,
                columns: (1..=count).map(column).collect(),
                key: vec![1],
                index_name: None,
                start_lsn: Lsn::default(),
                net_changes: false,
                role: None,
                created: SqlValue::Null,
            };
            let last = capture.columns.len() - 1;
            let mask = capture.mask(|at| at == last);
            assert_eq!(mask.len(), capture.columns.len().div_ceil(8));
            assert_eq!(mask[0], 1 << (last % 8), "{count} columns");
            assert_eq!(capture.mask(|at| at == 0).last(), Some(&1));
        }
    }
}
