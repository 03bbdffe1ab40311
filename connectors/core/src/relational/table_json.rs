//! Structures of tables as the JSON of schema history records.
//!
//! Members and their order are Debezium's: of a column those that are numbers or lists are left out if there
//! is no value, the others are null. Members that are not known are passed over when reading, and those that
//! older versions did not write may be missing.

use serde_json::{Map, Value as Json, json};

use super::column::{Column, ColumnDefault};
use super::table::{Attribute, Table};
use super::table_id::{TableId, TwoParts};

/// A member that is missing or of the wrong kind. The text says which, from the outside in.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct TableJsonError(String);

type Outcome<T> = Result<T, TableJsonError>;

/// What happened to a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeKind {
    Create,
    Alter,
    Drop,
}

impl ChangeKind {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Alter => "ALTER",
            Self::Drop => "DROP",
        }
    }
}

/// A change of a structure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableChange {
    pub kind: ChangeKind,
    /// What the table was called before, if it was renamed.
    pub previous_id: Option<TableId>,
    /// As it is from then on; for one that was dropped, what was known of it.
    pub table: Table,
}

impl TableChange {
    pub fn new(kind: ChangeKind, table: Table) -> Self {
        Self { kind, previous_id: None, table }
    }

    pub fn to_json(&self) -> Json {
        let mut out = Map::new();
        out.insert("type".into(), self.kind.as_str().into());
        out.insert("id".into(), self.table.id.quoted().into());
        if let Some(previous) = &self.previous_id {
            out.insert("previousId".into(), previous.quoted().into());
        }
        out.insert("table".into(), table_json(&self.table));
        out.insert("comment".into(), json!(self.table.comment));
        Json::Object(out)
    }

    /// `two`: what a name of two parts lacks.
    ///
    /// # Errors
    /// What is missing or wrong.
    pub fn from_json(json: &Json, two: TwoParts) -> Outcome<Self> {
        let change = Members::new(json, "tableChanges")?;
        let id = |text: &str| TableId::parse(text, two).map_err(|e| TableJsonError(e.to_string()));
        let kind = match change.text("type")? {
            "CREATE" => ChangeKind::Create,
            "ALTER" => ChangeKind::Alter,
            "DROP" => ChangeKind::Drop,
            other => return Err(change.fault("type", &format!("is '{other}', not CREATE, ALTER or DROP"))),
        };
        let table_id = id(change.text("id")?)?;
        let previous_id = change.opt_text("previousId")?.map(id).transpose()?;
        let mut table = match (kind, change.get("table")) {
            // Only the name of a dropped table counts, so what else there is may be incomplete.
            (ChangeKind::Drop, None) => Table::bare(table_id),
            (ChangeKind::Drop, Some(json)) => {
                table_from_json(json, table_id.clone()).unwrap_or_else(|_| Table::bare(table_id))
            }
            (_, Some(json)) => table_from_json(json, table_id)?,
            (_, None) => return Err(change.fault("table", "is missing")),
        };
        table.comment = table.comment.or(change.opt_text("comment")?.map(str::to_owned));
        Ok(Self { kind, previous_id, table })
    }
}

fn table_json(table: &Table) -> Json {
    let attribute = |attribute: &Attribute| json!({"name": attribute.name, "value": attribute.value});
    json!({
        "defaultCharsetName": table.default_charset_name,
        "primaryKeyColumnNames": table.primary_key().iter().map(|name| &**name).collect::<Vec<_>>(),
        "columns": table.columns().iter().map(column_json).collect::<Vec<_>>(),
        "attributes": table.attributes.iter().map(attribute).collect::<Vec<_>>(),
    })
}

fn column_json(column: &Column) -> Json {
    let mut out = Map::new();
    out.insert("name".into(), json!(&*column.name));
    out.insert("jdbcType".into(), column.jdbc_type.into());
    if let Some(native) = column.native_type {
        out.insert("nativeType".into(), native.into());
    }
    out.insert("typeName".into(), json!(&*column.type_name));
    out.insert("typeExpression".into(), json!(column.type_expression.as_deref()));
    out.insert("charsetName".into(), json!(column.charset_name.as_deref()));
    if let Some(length) = column.length {
        out.insert("length".into(), length.into());
    }
    if let Some(scale) = column.scale {
        out.insert("scale".into(), scale.into());
    }
    out.insert("position".into(), column.position.into());
    out.insert("optional".into(), column.optional.into());
    out.insert("autoIncremented".into(), column.auto_incremented.into());
    out.insert("generated".into(), column.generated.into());
    out.insert("comment".into(), json!(column.comment.as_deref()));
    out.insert("hasDefaultValue".into(), (column.default != ColumnDefault::None).into());
    if let Some(expression) = column.default.expression() {
        out.insert("defaultValueExpression".into(), json!(&**expression));
    }
    if let Some(values) = &column.enum_values {
        out.insert("enumValues".into(), json!(values));
    }
    Json::Object(out)
}

fn table_from_json(json: &Json, id: TableId) -> Outcome<Table> {
    let members = Members::new(json, "table")?;
    let columns: Outcome<Vec<Column>> = members.array("columns")?.iter().map(column_from_json).collect();
    let key = members.array("primaryKeyColumnNames")?.iter().map(|name| name.as_str().map(Into::into));
    let key: Option<Vec<_>> = key.collect();
    let key = key.ok_or_else(|| members.fault("primaryKeyColumnNames", "is not a list of texts"))?;
    let mut table = Table::new(id, columns?, key).map_err(TableJsonError)?;
    table.default_charset_name = members.opt_text("defaultCharsetName")?.map(str::to_owned);
    table.comment = members.opt_text("comment")?.map(str::to_owned);
    if members.get("attributes").is_some() {
        let attribute = |json: &Json| {
            let members = Members::new(json, "attributes")?;
            let value = members.opt_text("value")?.unwrap_or_default().to_owned();
            Ok(Attribute { name: members.text("name")?.to_owned(), value })
        };
        table.attributes = members.array("attributes")?.iter().map(attribute).collect::<Outcome<_>>()?;
    }
    Ok(table)
}

fn column_from_json(json: &Json) -> Outcome<Column> {
    let members = Members::new(json, "columns")?;
    let jdbc_type = members.int("jdbcType")?.ok_or_else(|| members.fault("jdbcType", "is missing"))?;
    let position = members.int("position")?.ok_or_else(|| members.fault("position", "is missing"))?;
    let mut column = Column::new(members.text("name")?, position, jdbc_type, members.text("typeName")?);
    column.native_type = members.int("nativeType")?;
    column.type_expression = members.opt_text("typeExpression")?.map(Into::into);
    column.charset_name = members.opt_text("charsetName")?.map(Into::into);
    column.length = members.int("length")?;
    column.scale = members.int("scale")?;
    column.optional = members.flag("optional")?;
    column.auto_incremented = members.flag("autoIncremented")?;
    column.generated = members.flag("generated")?;
    column.comment = members.opt_text("comment")?.map(Into::into);
    column.default = match (members.opt_text("defaultValueExpression")?, members.flag("hasDefaultValue")?) {
        (Some(text), _) => ColumnDefault::Expression(text.into()),
        (None, true) => ColumnDefault::Null,
        (None, false) => ColumnDefault::None,
    };
    if members.get("enumValues").is_some() {
        let values = members.array("enumValues")?.iter().map(|value| value.as_str().map(str::to_owned));
        let values: Option<Vec<_>> = values.collect();
        column.enum_values = Some(values.ok_or_else(|| members.fault("enumValues", "is not a list of texts"))?);
    }
    Ok(column)
}

/// Reads members of an object; null counts as missing.
struct Members<'a> {
    of: &'static str,
    map: &'a Map<String, Json>,
}

impl<'a> Members<'a> {
    fn new(json: &'a Json, of: &'static str) -> Outcome<Self> {
        let map = json.as_object().ok_or_else(|| TableJsonError(format!("{of} has something that is no object")))?;
        Ok(Self { of, map })
    }
    fn fault(&self, member: &str, fault: &str) -> TableJsonError {
        let named = match self.map.get("name").and_then(Json::as_str) {
            Some(name) => format!(" of '{name}'"),
            None => String::new(),
        };
        TableJsonError(format!("{}.{member}{named} {fault}", self.of))
    }
    fn get(&self, member: &str) -> Option<&'a Json> {
        self.map.get(member).filter(|value| !value.is_null())
    }
    fn opt_text(&self, member: &str) -> Outcome<Option<&'a str>> {
        let text = |value: &'a Json| value.as_str().ok_or_else(|| self.fault(member, "is not a text"));
        self.get(member).map(text).transpose()
    }
    fn text(&self, member: &str) -> Outcome<&'a str> {
        self.opt_text(member)?.ok_or_else(|| self.fault(member, "is missing"))
    }
    fn int(&self, member: &str) -> Outcome<Option<i32>> {
        let int = |value: &Json| {
            let int = value.as_i64().and_then(|n| i32::try_from(n).ok());
            int.ok_or_else(|| self.fault(member, "is not a number of 32 bits"))
        };
        self.get(member).map(int).transpose()
    }
    /// Missing is false.
    fn flag(&self, member: &str) -> Outcome<bool> {
        let flag = |value: &Json| value.as_bool().ok_or_else(|| self.fault(member, "is neither true nor false"));
        Ok(self.get(member).map(flag).transpose()?.unwrap_or(false))
    }
    fn array(&self, member: &str) -> Outcome<&'a [Json]> {
        let array = self.get(member).ok_or_else(|| self.fault(member, "is missing"))?;
        array.as_array().map(Vec::as_slice).ok_or_else(|| self.fault(member, "is not a list"))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use proptest::prelude::*;

    use super::super::column::jdbc;
    use super::*;

    fn any_column() -> impl Strategy<Value = Column> {
        let text = || proptest::option::of("\\PC{0,6}");
        let number = || proptest::option::of(any::<i32>());
        let default = prop_oneof![
            Just(ColumnDefault::None),
            Just(ColumnDefault::Null),
            "\\PC{0,6}".prop_map(|text: String| ColumnDefault::Expression(text.into())),
        ];
        let flags = (any::<bool>(), any::<bool>(), any::<bool>());
        let values = proptest::option::of(proptest::collection::vec("\\PC{0,4}", 0..3));
        (any::<i32>(), number(), number(), number(), text(), text(), flags, default, values).prop_map(
            |(jdbc_type, native_type, length, scale, comment, charset, flags, default, enum_values)| Column {
                native_type,
                length,
                scale,
                comment: comment.map(Into::into),
                charset_name: charset.map(Into::into),
                optional: flags.0,
                auto_incremented: flags.1,
                generated: flags.2,
                default,
                enum_values,
                ..Column::new("", 0, jdbc_type, "type")
            },
        )
    }

    proptest! {
        #[test]
        fn any_structure_reads_back(
            columns in proptest::collection::vec(any_column(), 0..5),
            comment in proptest::option::of("\\PC{0,6}"),
            names in ("\\PC{1,6}", "\\PC{1,6}"),
        ) {
            let named = |(at, column): (i32, Column)| Column { name: format!("c{at}").into(), position: at, ..column };
            let columns: Vec<Column> = (1..).zip(columns).map(named).collect();
            let key = columns.iter().rev().map(|column| column.name.clone()).collect();
            let mut table = Table::new(TableId::new(Some(&names.0), None, &names.1), columns, key).unwrap();
            table.comment = comment;
            let change = TableChange::new(ChangeKind::Create, table);
            prop_assert_eq!(TableChange::from_json(&change.to_json(), TwoParts::CatalogAndTable).unwrap(), change);
        }
    }

    /// Member by member what Debezium writes for a SQL Server table.
    const ALTER: &str = r#"{"type":"ALTER","id":"\"shop\".\"dbo\".\"item\"","table":{"defaultCharsetName":null,"primaryKeyColumnNames":["id"],"columns":[{"name":"id","jdbcType":4,"typeName":"int identity","typeExpression":"int identity","charsetName":null,"length":10,"scale":0,"position":1,"optional":false,"autoIncremented":false,"generated":false,"comment":null,"hasDefaultValue":false},{"name":"kind","jdbcType":1,"nativeType":7,"typeName":"char","typeExpression":null,"charsetName":"latin1","position":2,"optional":true,"autoIncremented":true,"generated":true,"comment":"of it","hasDefaultValue":true,"defaultValueExpression":"('a')","enumValues":["a","b"]}],"attributes":[{"name":"x","value":"1"}]},"comment":"things"}"#;

    fn read(text: &str) -> Outcome<TableChange> {
        TableChange::from_json(&serde_json::from_str(text).unwrap(), TwoParts::SchemaAndTable)
    }

    #[test]
    fn a_change_reads_and_writes_as_debezium_has_it() {
        let change = read(ALTER).unwrap();
        assert_eq!(change.kind, ChangeKind::Alter);
        assert_eq!(change.table.id, TableId::new(Some("shop"), Some("dbo"), "item"));
        let id = change.table.column("id").unwrap();
        assert_eq!((id.jdbc_type, id.length, id.scale, id.native_type), (jdbc::INTEGER, Some(10), Some(0), None));
        let kind = change.table.column("kind").unwrap();
        assert_eq!(kind.default, ColumnDefault::Expression("('a')".into()));
        assert_eq!((kind.length, kind.type_expression.as_deref()), (None, None));
        assert_eq!(change.table.comment.as_deref(), Some("things"));
        assert_eq!(change.to_json().to_string(), ALTER);
    }

    #[test]
    fn records_of_older_versions_lack_members_and_newer_ones_have_more() {
        let old = r#"{"type":"CREATE","id":"\"s\".\"t\"","table":{"defaultCharsetName":null,"primaryKeyColumnNames":[],"comment":"inside","columns":[{"name":"a","jdbcType":4,"typeName":"int","typeExpression":"int","charsetName":null,"position":1,"segmentPosition":1,"optional":true,"autoIncremented":false,"generated":false}]}}"#;
        let change = read(old).unwrap();
        assert_eq!(change.table.id, TableId::new(None, Some("s"), "t"));
        assert_eq!(change.table.columns()[0], Column::new("a", 1, jdbc::INTEGER, "int").nullable());
        assert_eq!(change.table.comment.as_deref(), Some("inside"));
    }

    #[test]
    fn renames_and_drops() {
        let mut change = read(ALTER).unwrap();
        change.previous_id = Some(TableId::new(Some("shop"), Some("dbo"), "old"));
        let json = change.to_json();
        assert!(json.to_string().contains(r#""item\"","previousId":"\"shop\".\"dbo\".\"old\"","table""#));
        assert_eq!(TableChange::from_json(&json, TwoParts::SchemaAndTable).unwrap(), change);
        for drop in [r#"{"type":"DROP","id":"\"t\"","table":null}"#, r#"{"type":"DROP","id":"t","table":{}}"#] {
            let change = read(drop).unwrap();
            assert_eq!(change, TableChange::new(ChangeKind::Drop, Table::bare(TableId::new(None, None, "t"))));
        }
    }

    #[test]
    fn an_explicit_null_default_is_kept() {
        let mut table = Table::bare(TableId::new(None, None, "t"));
        let mut column = Column::new("a", 1, jdbc::INTEGER, "int");
        column.default = ColumnDefault::Null;
        table = Table::new(table.id, vec![column], Vec::new()).unwrap();
        let change = TableChange::new(ChangeKind::Create, table);
        assert_eq!(TableChange::from_json(&change.to_json(), TwoParts::SchemaAndTable).unwrap(), change);
    }

    #[test]
    fn what_is_wrong_is_named() {
        let table = |columns: &str| {
            format!(r#"{{"type":"CREATE","id":"t","table":{{"primaryKeyColumnNames":["k"],"columns":[{columns}]}}}}"#)
        };
        for (text, expected) in [
            ("[]".to_owned(), "tableChanges has something that is no object"),
            (r#"{"type":"X","id":"t"}"#.to_owned(), "tableChanges.type is 'X', not CREATE, ALTER or DROP"),
            (r#"{"type":"CREATE","id":"t"}"#.to_owned(), "tableChanges.table is missing"),
            (r#"{"type":"CREATE","id":""}"#.to_owned(), "'' is no name of a table: a part is empty"),
            (table(r#"{"name":"a"}"#), "columns.jdbcType of 'a' is missing"),
            (table(r#"{"name":"a","jdbcType":5000000000}"#), "columns.jdbcType of 'a' is not a number of 32 bits"),
            (
                table(r#"{"name":"a","jdbcType":4,"position":1,"typeName":"int","optional":1}"#),
                "columns.optional of 'a' is neither true nor false",
            ),
            (
                table(r#"{"name":"a","jdbcType":4,"position":1,"typeName":"int"}"#),
                "table t has no column 'k', which its primary key names",
            ),
        ] {
            assert_eq!(read(&text).unwrap_err().to_string(), expected);
        }
    }
}
