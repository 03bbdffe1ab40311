//! All databases and logins, as they are at one moment.

use std::sync::Arc;

use super::catalogue::{Database, Granted, Table};
use super::kinds::text::same_name;

#[derive(Debug, Clone, Default)]
pub(crate) struct World {
    /// In the order of their ids.
    pub(crate) databases: Vec<Arc<Database>>,
    pub(crate) logins: Vec<Login>,
}

#[derive(Debug, Clone)]
pub(crate) struct Login {
    pub(crate) name: String,
    pub(crate) password: String,
    /// Member of the server role `sysadmin`: may do everything.
    pub(crate) sysadmin: bool,
    /// Upper-case names of permissions on the server.
    pub(crate) granted: Vec<String>,
}

impl World {
    pub(crate) fn database(&self, name: &str) -> Option<Arc<Database>> {
        self.databases.iter().find(|d| same_name(&d.name, name)).cloned()
    }

    pub(crate) fn database_by_id(&self, id: i32) -> Option<Arc<Database>> {
        self.databases.iter().find(|d| d.id == id).cloned()
    }

    /// The database and the table with this object id.
    pub(crate) fn table(&self, id: i32) -> Option<(Arc<Database>, Arc<Table>)> {
        self.databases.iter().find_map(|d| d.tables.get(&id).map(|t| (d.clone(), t.clone())))
    }

    /// Puts a database in the place of the one with its id, or adds it.
    pub(crate) fn put(&mut self, database: Arc<Database>) {
        match self.databases.iter_mut().find(|d| d.id == database.id) {
            Some(old) => *old = database,
            None => self.databases.push(database),
        }
    }

    pub(crate) fn login(&self, name: &str) -> Option<&Login> {
        self.logins.iter().find(|l| same_name(&l.name, name))
    }

    pub(crate) fn is_sysadmin(&self, user: &str) -> bool {
        self.login(user).is_some_and(|l| l.sysadmin)
    }

    /// System databases let everybody in as `guest`.
    pub(crate) fn may_enter(&self, database: &Database, user: &str) -> bool {
        self.is_sysadmin(user) || database.id <= 4 || database.user_of(user).is_some()
    }

    /// Whether a permission holds, on a table or on the whole database. A denial wins ("Permissions").
    pub(crate) fn may(&self, database: &Database, user: &str, permission: &str, on: Option<&Table>) -> bool {
        if self.is_sysadmin(user) || on.is_some_and(Table::is_temporary) {
            return true;
        }
        let Some(principal) = database.user_of(user) else { return false };
        let concerns = |granted: &Granted| match (granted, on) {
            (Granted::Database, _) => true,
            (Granted::Schema(schema), Some(table)) => same_name(schema, &table.schema),
            (Granted::Object(id), Some(table)) => *id == table.id,
            _ => false,
        };
        let names = |grantee: &str| {
            same_name(grantee, &principal.name)
                || same_name(grantee, "public")
                || principal.roles.iter().any(|r| same_name(r, grantee))
        };
        let mut found = database
            .permissions
            .iter()
            .filter(|p| {
                names(&p.grantee)
                    && concerns(&p.on)
                    && (p.permission.eq_ignore_ascii_case(permission) || p.permission == "CONTROL")
            })
            .peekable();
        if found.peek().is_some() {
            return found.all(|p| !p.denied);
        }
        principal.roles.iter().any(|role| match role.as_str() {
            "db_owner" => true,
            "db_datareader" => permission == "SELECT",
            "db_datawriter" => matches!(permission, "INSERT" | "UPDATE" | "DELETE"),
            "db_ddladmin" => matches!(permission, "ALTER" | "CREATE TABLE"),
            _ => false,
        })
    }

    /// `VIEW SERVER STATE` and the like.
    pub(crate) fn may_on_server(&self, user: &str, permission: &str) -> bool {
        self.login(user).is_some_and(|l| l.sysadmin || l.granted.iter().any(|g| g == permission))
    }
}
