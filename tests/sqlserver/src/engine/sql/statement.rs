//! What a statement says.

use std::sync::Arc;

use sqlparser::ast::{Expr, Query, SelectItem, TableFactor, TableWithJoins};

use crate::session::Isolation;

/// A name of up to three parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Name {
    pub(crate) database: Option<String>,
    pub(crate) schema: Option<String>,
    pub(crate) object: String,
}

impl Name {
    pub(crate) fn local(object: &str) -> Self {
        Self { database: None, schema: None, object: object.to_owned() }
    }

    /// That of the object; `dbo` if none is said.
    pub(crate) fn schema(&self) -> &str {
        self.schema.as_deref().unwrap_or("dbo")
    }

    /// With dots, without brackets: as errors print it.
    pub(crate) fn text(&self) -> String {
        let parts = [self.database.as_deref(), self.schema.as_deref(), Some(&*self.object)];
        let parts: Vec<&str> = match parts {
            [Some(d), None, Some(o)] => vec![d, "", o],
            _ => parts.into_iter().flatten().collect(),
        };
        parts.join(".")
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Step {
    /// In the batch, from 1.
    pub(crate) line: u32,
    pub(crate) act: Act,
}

#[derive(Debug, Clone)]
pub(crate) enum Act {
    Declare(Vec<Declared>),
    /// `SET @x = …`; compound assignments are already written out.
    Assign(String, Expr),
    SetOption(SetOption),
    Print(Expr),
    Raise {
        message: Expr,
        severity: Expr,
        state: Expr,
        arguments: Vec<Expr>,
    },
    /// Number, text, state; without them it throws again what was caught.
    Throw(Option<[Expr; 3]>),
    If {
        condition: Expr,
        then: Box<Step>,
        otherwise: Option<Box<Step>>,
    },
    While {
        condition: Expr,
        body: Box<Step>,
    },
    Block(Vec<Step>),
    Try {
        body: Vec<Step>,
        catch: Vec<Step>,
    },
    Break,
    Continue,
    Return(Option<Expr>),
    Use(String),
    Begin {
        name: String,
    },
    Commit,
    Rollback {
        name: String,
    },
    Save {
        name: String,
    },
    Execute(Execute),
    Query(Box<Query>),
    Insert(Box<Insert>),
    Update(Box<Update>),
    Delete(Box<Delete>),
    Merge(Box<Merge>),
    Truncate(Name),
    Define(Box<Define>),
    Kill(Expr),
    /// Milliseconds, or a text `hh:mm:ss`.
    WaitFor(Expr),
    /// Accepted and without effect.
    Nothing,
}

#[derive(Debug, Clone)]
pub(crate) struct Declared {
    pub(crate) name: String,
    pub(crate) what: Declaration,
}

#[derive(Debug, Clone)]
pub(crate) enum Declaration {
    Scalar(TypeName, Option<Box<Expr>>),
    Table(TableBody),
}

/// A type's name with its sizes; `max` is `None`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TypeName {
    pub(crate) name: Name,
    pub(crate) sizes: Vec<Option<u32>>,
}

#[derive(Debug, Clone)]
pub(crate) enum SetOption {
    Isolation(Isolation),
    /// Milliseconds; −1 waits for ever.
    LockTimeout(Expr),
    NoCount(bool),
    XactAbort(bool),
    ImplicitTransactions(bool),
    IdentityInsert(Name, bool),
    RowCount(Expr),
    DeadlockPriority(i32),
}

#[derive(Debug, Clone)]
pub(crate) struct Execute {
    /// Variable for the status.
    pub(crate) status: Option<String>,
    pub(crate) what: Executed,
}

#[derive(Debug, Clone)]
pub(crate) enum Executed {
    Procedure(Name, Vec<Argument>),
    /// `EXEC ('…')`.
    Text(Box<Expr>),
}

#[derive(Debug, Clone)]
pub(crate) struct Argument {
    /// With its `@`; `None`: by place.
    pub(crate) name: Option<String>,
    /// `None`: `DEFAULT`.
    pub(crate) value: Option<Expr>,
    pub(crate) output: bool,
}

#[derive(Debug, Clone)]
pub(crate) struct Output {
    pub(crate) items: Vec<SelectItem>,
    pub(crate) into: Option<(Name, Vec<String>)>,
}

#[derive(Debug, Clone)]
pub(crate) struct Insert {
    pub(crate) top: Option<Expr>,
    pub(crate) table: Name,
    pub(crate) hints: Vec<String>,
    /// Empty: all that can be given.
    pub(crate) columns: Vec<String>,
    pub(crate) output: Option<Output>,
    pub(crate) source: InsertSource,
}

#[derive(Debug, Clone)]
pub(crate) enum InsertSource {
    Defaults,
    /// A value of `None` is `DEFAULT`.
    Values(Vec<Vec<Option<Expr>>>),
    Query(Box<Query>),
    Execute(Box<Execute>),
}

#[derive(Debug, Clone)]
pub(crate) struct Assignment {
    pub(crate) column: String,
    /// `None`: `DEFAULT`.
    pub(crate) value: Option<Expr>,
}

#[derive(Debug, Clone)]
pub(crate) struct Update {
    pub(crate) top: Option<Expr>,
    /// A table's name, or an alias of the `FROM` clause.
    pub(crate) target: Name,
    pub(crate) hints: Vec<String>,
    pub(crate) assignments: Vec<Assignment>,
    pub(crate) output: Option<Output>,
    pub(crate) from: Vec<TableWithJoins>,
    pub(crate) filter: Option<Expr>,
}

#[derive(Debug, Clone)]
pub(crate) struct Delete {
    pub(crate) top: Option<Expr>,
    pub(crate) target: Name,
    pub(crate) hints: Vec<String>,
    pub(crate) output: Option<Output>,
    pub(crate) from: Vec<TableWithJoins>,
    pub(crate) filter: Option<Expr>,
}

#[derive(Debug, Clone)]
pub(crate) struct Merge {
    pub(crate) target: Name,
    pub(crate) alias: Option<String>,
    pub(crate) source: TableFactor,
    pub(crate) on: Expr,
    pub(crate) clauses: Vec<MergeClause>,
    pub(crate) output: Option<Output>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MergeWhen {
    Matched,
    NotMatchedByTarget,
    NotMatchedBySource,
}

#[derive(Debug, Clone)]
pub(crate) struct MergeClause {
    pub(crate) when: MergeWhen,
    pub(crate) filter: Option<Expr>,
    pub(crate) action: MergeAction,
}

#[derive(Debug, Clone)]
pub(crate) enum MergeAction {
    Insert { columns: Vec<String>, values: Vec<Option<Expr>> },
    Update(Vec<Assignment>),
    Delete,
}

/// Statements that change the catalogue.
#[derive(Debug, Clone)]
pub(crate) enum Define {
    CreateTable {
        name: Name,
        body: TableBody,
    },
    AddToTable {
        table: Name,
        body: TableBody,
    },
    AlterColumn {
        table: Name,
        column: Box<ColumnSpec>,
    },
    DropFromTable {
        table: Name,
        constraints: Vec<String>,
        columns: Vec<String>,
        if_exists: bool,
    },
    DropTable {
        names: Vec<Name>,
        if_exists: bool,
    },
    CreateIndex {
        table: Name,
        index: Box<IndexSpec>,
    },
    DropIndex {
        name: String,
        table: Name,
        if_exists: bool,
    },
    CreateSchema(String),
    DropSchema {
        name: String,
        if_exists: bool,
    },
    CreateDatabase {
        name: String,
        collation: Option<String>,
    },
    DropDatabase {
        names: Vec<String>,
        if_exists: bool,
    },
    AlterDatabase {
        name: Option<String>,
        setting: DatabaseSetting,
    },
    CreateType {
        name: Name,
        base: TypeName,
        nullable: bool,
    },
    DropType(Name),
    CreateView {
        name: Name,
        columns: Vec<String>,
        query: Box<Query>,
        text: String,
        or_alter: bool,
    },
    DropView {
        names: Vec<Name>,
        if_exists: bool,
    },
    CreateProcedure {
        name: Name,
        parameters: Vec<ProcedureParameter>,
        body: Arc<Vec<Step>>,
        text: String,
        alter: bool,
        or_alter: bool,
    },
    DropProcedure {
        names: Vec<Name>,
        if_exists: bool,
    },
    CreateLogin {
        name: String,
        password: String,
    },
    DropLogin(String),
    CreateUser {
        name: String,
        login: Option<String>,
    },
    DropUser(String),
    Role {
        role: String,
        member: String,
        add: bool,
    },
    Permission {
        kind: PermissionKind,
        permissions: Vec<String>,
        on: Securable,
        to: Vec<String>,
    },
    SystemVersioning {
        table: Name,
        history: Option<Name>,
        on: bool,
    },
}

#[derive(Debug, Clone)]
pub(crate) struct ProcedureParameter {
    /// With its `@`.
    pub(crate) name: String,
    pub(crate) kind: TypeName,
    pub(crate) default: Option<Expr>,
    pub(crate) output: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PermissionKind {
    Grant,
    Deny,
    Revoke,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Securable {
    Database,
    Schema(String),
    Object(Name),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum DatabaseSetting {
    AllowSnapshot(bool),
    ReadCommittedSnapshot(bool),
    Online(bool),
    Rename(String),
    Other,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct TableBody {
    pub(crate) columns: Vec<ColumnSpec>,
    pub(crate) constraints: Vec<ConstraintSpec>,
    pub(crate) indexes: Vec<IndexSpec>,
    /// Columns of `PERIOD FOR SYSTEM_TIME`.
    pub(crate) period: Option<(String, String)>,
    /// `SYSTEM_VERSIONING = ON`, with the history table's name if it was given.
    pub(crate) versioned: Option<Option<Name>>,
}

#[derive(Debug, Clone)]
pub(crate) struct ColumnSpec {
    pub(crate) name: String,
    /// `None`: a computed column.
    pub(crate) kind: Option<TypeName>,
    pub(crate) computed: Option<(Expr, bool)>,
    pub(crate) nullable: Option<bool>,
    /// Seed and increment.
    pub(crate) identity: Option<(i64, i64)>,
    /// Name of the constraint and value.
    pub(crate) default: Option<(Option<String>, Expr)>,
    pub(crate) collation: Option<String>,
    pub(crate) rowguid: bool,
    pub(crate) sparse: bool,
    pub(crate) hidden: bool,
    /// 1: start of the row's period, 2: its end.
    pub(crate) generated: u8,
}

#[derive(Debug, Clone)]
pub(crate) struct ConstraintSpec {
    pub(crate) name: Option<String>,
    pub(crate) what: ConstraintKind,
}

#[derive(Debug, Clone)]
pub(crate) enum ConstraintKind {
    Key {
        primary: bool,
        clustered: Option<bool>,
        columns: Vec<(String, bool)>,
    },
    Check(Expr),
    Foreign {
        columns: Vec<String>,
        table: Name,
        referred: Vec<String>,
        on_delete: Referential,
    },
    /// `DEFAULT value FOR column`.
    Default(Expr, String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Referential {
    Refuse,
    Cascade,
    SetNull,
}

#[derive(Debug, Clone)]
pub(crate) struct IndexSpec {
    pub(crate) name: String,
    pub(crate) unique: bool,
    pub(crate) clustered: bool,
    /// Name and whether it descends.
    pub(crate) columns: Vec<(String, bool)>,
    pub(crate) include: Vec<String>,
    pub(crate) filter: Option<Expr>,
}
