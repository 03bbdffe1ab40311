//! Statements that define databases.
//!
//! Follows "CREATE DATABASE (Transact-SQL)", "ALTER DATABASE (Transact-SQL)", "DROP DATABASE (Transact-SQL)".

use super::batch::Runner;
use super::define::gone;
use crate::engine::catalogue::Database;
use crate::engine::fault::{Outcome, SqlError};
use crate::engine::sql::statement::DatabaseSetting;
use crate::session::Answers;

impl Runner {
    pub(super) fn administrator(&self, what: &str) -> Outcome<()> {
        if self.engine.world().is_sysadmin(&self.state.login.user) {
            return Ok(());
        }
        Err(SqlError::new(262, format!("{what} permission denied in database 'master'.")).class(14).into())
    }

    pub(super) fn create_database(&mut self, name: &str, collation: Option<&str>) -> Outcome<()> {
        self.administrator("CREATE DATABASE")?;
        if self.state.read(|s| s.trancount) > 0 {
            return Err(SqlError::new(
                226,
                "CREATE DATABASE statement not allowed within multi-statement transaction.",
            )
            .into());
        }
        let world = self.engine.world();
        if world.database(name).is_some() {
            let text = format!("Database '{name}' already exists. Choose a different database name.");
            return Err(SqlError::new(1801, text).state(3).into());
        }
        let id = world.databases.iter().map(|d| d.id).max().unwrap_or(4).max(4) + 1;
        let collation = collation.unwrap_or(crate::engine::catalogue::DEFAULT_COLLATION);
        self.engine.put(Database::new(id, name, collation, self.engine.local_now()));
        Ok(())
    }

    pub(super) fn drop_database(&mut self, name: &str, if_exists: bool) -> Outcome<()> {
        self.administrator("DROP DATABASE")?;
        let world = self.engine.world();
        let Some(database) = world.database(name) else {
            return if if_exists { Ok(()) } else { Err(gone("database", name).into()) };
        };
        let sessions = self.engine.sessions.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if sessions.values().any(|s| s.database() == database.id) {
            return Err(SqlError::new(
                3702,
                format!("Cannot drop database \"{name}\" because it is currently in use."),
            )
            .state(3)
            .into());
        }
        drop(sessions);
        self.engine.change_world(|w| w.databases.retain(|d| d.id != database.id));
        Ok(())
    }

    pub(super) fn alter_database(
        &mut self,
        name: Option<&str>,
        setting: &DatabaseSetting,
        answers: &mut dyn Answers,
    ) -> Outcome<()> {
        self.administrator("ALTER DATABASE")?;
        let world = self.engine.world();
        let found = match name {
            Some(name) => world.database(name),
            None => world.database_by_id(self.current()),
        };
        let Some(database) = found else {
            let text = format!(
                "User does not have permission to alter database '{}', the database does not exist, or the database is not in a state that allows access checks.",
                name.unwrap_or("")
            );
            return Err(SqlError::new(5011, text).class(14).state(5).into());
        };
        if *setting == DatabaseSetting::Online(false) {
            // WITH ROLLBACK IMMEDIATE, which is taken for granted: other sessions in it end.
            let sessions = self.engine.sessions.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            for session in sessions.values().filter(|s| s.id != self.state.id && s.database() == database.id) {
                session.kill();
            }
            drop(sessions);
            self.engine.locks.wake();
        }
        self.change(database.id, answers, |_, database| {
            match setting {
                DatabaseSetting::AllowSnapshot(on) => database.allow_snapshot = *on,
                DatabaseSetting::ReadCommittedSnapshot(on) => database.read_committed_snapshot = *on,
                DatabaseSetting::Online(on) => database.online = *on,
                DatabaseSetting::Rename(name) => database.name.clone_from(name),
                DatabaseSetting::Other => {}
            }
            Ok(())
        })
    }
}
