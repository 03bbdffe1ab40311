//! `sqlparser`'s dialect of SQL Server, with the words that T-SQL reserves: without semicolons they tell
//! where the next statement begins, so they are no aliases.

use std::any::TypeId;

use sqlparser::dialect::{Dialect, MsSqlDialect};
use sqlparser::keywords::Keyword;
use sqlparser::parser::Parser;

#[derive(Debug, Default)]
pub(crate) struct Tsql(MsSqlDialect);

/// Words that begin or end a statement, or follow a table.
fn is_reserved(keyword: &Keyword) -> bool {
    matches!(
        keyword,
        Keyword::BEGIN
            | Keyword::CLOSE
            | Keyword::COMMIT
            | Keyword::CONTINUE
            | Keyword::DEALLOCATE
            | Keyword::DENY
            | Keyword::END
            | Keyword::FETCH
            | Keyword::GRANT
            | Keyword::KILL
            | Keyword::OPEN
            | Keyword::OPTION
            | Keyword::OUTPUT
            | Keyword::REVOKE
            | Keyword::ROLLBACK
            | Keyword::SELECT
            | Keyword::SET
            | Keyword::USE
            | Keyword::WAITFOR
            | Keyword::WHEN
    )
}

impl Dialect for Tsql {
    fn dialect(&self) -> TypeId {
        self.0.dialect()
    }

    fn is_delimited_identifier_start(&self, ch: char) -> bool {
        self.0.is_delimited_identifier_start(ch)
    }

    fn is_identifier_start(&self, ch: char) -> bool {
        self.0.is_identifier_start(ch)
    }

    fn is_identifier_part(&self, ch: char) -> bool {
        self.0.is_identifier_part(ch)
    }

    fn identifier_quote_style(&self, identifier: &str) -> Option<char> {
        self.0.identifier_quote_style(identifier)
    }

    fn convert_type_before_value(&self) -> bool {
        true
    }

    fn supports_dollar_as_money_prefix(&self) -> bool {
        true
    }

    fn supports_eq_alias_assignment(&self) -> bool {
        true
    }

    fn supports_try_convert(&self) -> bool {
        true
    }

    fn supports_boolean_literals(&self) -> bool {
        false
    }

    fn supports_table_versioning(&self) -> bool {
        true
    }

    fn supports_nested_comments(&self) -> bool {
        true
    }

    fn supports_object_name_double_dot_notation(&self) -> bool {
        true
    }

    fn is_select_item_alias(&self, explicit: bool, keyword: &Keyword, parser: &mut Parser) -> bool {
        !is_reserved(keyword) && self.0.is_select_item_alias(explicit, keyword, parser)
    }

    fn is_table_factor(&self, keyword: &Keyword, parser: &mut Parser) -> bool {
        self.0.is_table_factor(keyword, parser)
    }

    fn is_table_factor_alias(&self, explicit: bool, keyword: &Keyword, parser: &mut Parser) -> bool {
        !is_reserved(keyword) && self.0.is_table_factor_alias(explicit, keyword, parser)
    }

    fn get_next_precedence(&self, parser: &Parser) -> Option<Result<u8, sqlparser::parser::ParserError>> {
        self.0.get_next_precedence(parser)
    }
}
