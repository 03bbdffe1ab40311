//! Which databases each task reads.
//!
//! The databases of a configuration go to the tasks in turn, in the order in which they are listed. A task's
//! configuration is the connector's with its own databases, spelt as the server spells them: offsets are stored under
//! that name, so that they follow a database to whatever task reads it.

use thalweg_config::Properties;

const NAMES: &str = "database.names";
const DBNAME: &str = "database.dbname";
/// In configurations of tasks: a single database may have its offset under another name.
const COUNT: &str = "thalweg.sqlserver.databases";

/// The databases of each task.
pub(crate) fn distribute(databases: &[String], max: usize) -> Vec<Vec<String>> {
    let count = databases.len().min(max.max(1));
    let mut tasks = vec![Vec::new(); count];
    for (at, database) in databases.iter().enumerate() {
        tasks[at % count].push(database.clone());
    }
    tasks
}

/// The configuration of a task that reads these databases.
pub(crate) fn task(connector: &Properties, databases: &[String], in_all: usize) -> Properties {
    let mut task = connector.clone();
    task.set(COUNT, in_all.to_string());
    if task.get(NAMES).is_some_and(|names| !names.trim().is_empty()) {
        task.set(NAMES, databases.join(","));
    } else if let Some(database) = databases.first() {
        task.set(DBNAME, database.clone());
    }
    task
}

/// How many databases the connector has that a task is of.
pub(crate) fn databases_in_all(task: &Properties) -> Option<usize> {
    task.get(COUNT)?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn t_22_databases_go_to_tasks_in_turn() {
        let databases = names(&["a", "b", "c", "d", "e"]);
        let tasks = distribute(&databases, 2);
        assert_eq!(tasks, [names(&["a", "c", "e"]), names(&["b", "d"])]);
        assert_eq!(distribute(&databases, 9).len(), 5);
        assert_eq!(distribute(&databases, 0), [databases]);
    }

    #[test]
    fn a_task_has_its_own_databases_in_either_layout() {
        let several = task(&Properties::from([(NAMES, "A,b"), ("x", "1")]), &names(&["a"]), 2);
        assert_eq!((several.get(NAMES), several.get("x")), (Some("a"), Some("1")));
        assert_eq!(databases_in_all(&several), Some(2));
        let single = task(&Properties::from([(DBNAME, "SHOP")]), &names(&["shop"]), 1);
        assert_eq!((single.get(NAMES), single.get(DBNAME)), (None, Some("shop")));
    }
}
