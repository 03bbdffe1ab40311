//! Roles and permissions.
//!
//! Follows "ALTER ROLE (Transact-SQL)", "GRANT (Transact-SQL)", "DENY (Transact-SQL)", "REVOKE (Transact-SQL)".

use super::batch::{Frame, Runner};
use crate::engine::catalogue::{Granted, Permission};
use crate::engine::fault::{Outcome, SqlError};
use crate::engine::kinds::text::same_name;
use crate::engine::sql::statement::{PermissionKind, Securable};
use crate::session::Answers;

impl Runner {
    pub(crate) fn set_role(&mut self, role: &str, member: &str, add: bool, answers: &mut dyn Answers) -> Outcome<()> {
        self.change(self.current(), answers, |_, database| {
            let Some(user) = database.users.iter_mut().find(|u| same_name(&u.name, member)) else {
                let text = format!(
                    "Cannot add the principal '{member}', because it does not exist or you do not have permission."
                );
                return Err(SqlError::new(15151, text).into());
            };
            user.roles.retain(|r| !same_name(r, role));
            if add {
                user.roles.push(role.to_lowercase());
            }
            Ok(())
        })
    }

    pub(super) fn permit(
        &mut self,
        kind: PermissionKind,
        permissions: &[String],
        on: &Securable,
        to: &[String],
        frame: &Frame,
        answers: &mut dyn Answers,
    ) -> Outcome<()> {
        let (id, on) = match on {
            Securable::Database => (self.current(), Granted::Database),
            Securable::Schema(schema) => (self.current(), Granted::Schema(schema.clone())),
            Securable::Object(name) => {
                let procedures = self.database_of(name, frame)?;
                match procedures.procedure(name.schema(), &name.object) {
                    Some(procedure) => (procedures.id, Granted::Object(procedure.id)),
                    None => {
                        let (database, table) = self.binder(frame).known_table(name)?;
                        (database.id, Granted::Object(table.id))
                    }
                }
            }
        };
        let is_server = |p: &str| p.starts_with("VIEW SERVER") || p.starts_with("VIEW ANY");
        self.engine.change_world(|w| {
            for login in w.logins.iter_mut().filter(|l| to.iter().any(|t| same_name(t, &l.name))) {
                for permission in permissions.iter().filter(|p| is_server(p)) {
                    login.granted.retain(|g| g != permission);
                    if kind == PermissionKind::Grant {
                        login.granted.push(permission.clone());
                    }
                }
            }
        });
        self.change(id, answers, |_, database| {
            for (permission, grantee) in permissions.iter().flat_map(|p| to.iter().map(move |t| (p, t))) {
                database
                    .permissions
                    .retain(|p| !(p.permission == *permission && same_name(&p.grantee, grantee) && p.on == on));
                if kind != PermissionKind::Revoke {
                    database.permissions.push(Permission {
                        grantee: grantee.clone(),
                        permission: permission.clone(),
                        on: on.clone(),
                        denied: kind == PermissionKind::Deny,
                    });
                }
            }
            Ok(())
        })
    }
}
