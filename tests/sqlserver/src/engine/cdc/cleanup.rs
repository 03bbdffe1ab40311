//! The clean-up job: old rows of change tables go, and the instances' valid intervals begin later.
//!
//! Follows "sys.sp_cdc_cleanup_change_table".

use std::sync::Arc;

use crate::engine::fault::Outcome;
use crate::engine::log::Lsn;
use crate::engine::run::Runner;
use crate::session::Answers;

impl Runner {
    /// Rows below the mark go; `instance` limits it to one. Rows of `lsn_time_mapping` below it go as well.
    pub(crate) fn clean(
        &mut self,
        database: i32,
        instance: Option<&str>,
        mark: Lsn,
        answers: &mut dyn Answers,
    ) -> Outcome<()> {
        self.in_transaction(answers, |runner, answers| {
            runner.change(database, answers, |runner, database| {
                let Some(cdc) = &mut database.cdc else { return Ok(()) };
                let hex: String = mark.0.iter().map(|b| format!("{b:02x}")).collect();
                for capture in &mut cdc.captures {
                    if instance.is_some_and(|i| !crate::engine::kinds::text::same_name(i, &capture.name)) {
                        continue;
                    }
                    runner.db.execute_batch(&format!("DELETE FROM o{} WHERE c1 < x'{hex}'", capture.object))?;
                    if capture.start_lsn < mark {
                        let mut changed = (**capture).clone();
                        changed.start_lsn = mark;
                        *capture = Arc::new(changed);
                    }
                }
                if let Some(lowest) = cdc.captures.iter().map(|c| c.start_lsn).min() {
                    let hex: String = lowest.0.iter().map(|b| format!("{b:02x}")).collect();
                    runner.db.execute_batch(&format!("DELETE FROM o{} WHERE c1 < x'{hex}'", cdc.time_mapping))?;
                }
                Ok(())
            })
        })
    }
}
