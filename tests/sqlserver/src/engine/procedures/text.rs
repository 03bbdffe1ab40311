//! Procedures that run a text: "sp_executesql", "sp_prepare", "sp_execute", "sp_prepexec", "sp_unprepare".

use std::collections::BTreeMap;

use super::Given;
use crate::engine::fault::{Outcome, SqlError};
use crate::engine::run::{Frame, Runner};
use crate::engine::sql;
use crate::engine::sql::statement::{Act, Declaration};
use crate::session::{Answers, Parameter};
use crate::types::SqlType;
use crate::value::SqlValue;

/// Prepared texts of a session by their handles.
#[derive(Default)]
pub(crate) struct Prepared {
    last: i32,
    /// Declaration of parameters, and text.
    texts: BTreeMap<i32, (String, String)>,
}

impl Runner {
    pub(super) fn text_procedure(
        &mut self,
        name: &str,
        given: &mut Given,
        depth: usize,
        answers: &mut dyn Answers,
    ) -> Outcome<Option<i32>> {
        match name {
            "sp_executesql" => {
                let text = given.text("stmt", 0).or_else(|| given.text("statement", 0)).unwrap_or_default();
                let declared = given.text("params", 1).unwrap_or_default();
                self.run_text(&text, &declared, given, 2, depth, answers)?;
            }
            "sp_prepare" => {
                let (declared, text) =
                    (given.text("params", 1).unwrap_or_default(), given.text("stmt", 2).unwrap_or_default());
                self.keep(given, declared, text);
            }
            "sp_prepexec" => {
                let (declared, text) =
                    (given.text("params", 1).unwrap_or_default(), given.text("stmt", 2).unwrap_or_default());
                self.keep(given, declared.clone(), text.clone());
                self.run_text(&text, &declared, given, 3, depth, answers)?;
            }
            "sp_execute" => {
                let handle = given.handle("handle", 0);
                let (declared, text) = self.kept(handle)?;
                self.run_text(&text, &declared, given, 1, depth, answers)?;
            }
            "sp_unprepare" => {
                let handle = given.handle("handle", 0);
                self.forget_prepared(handle);
            }
            _ => return Ok(None),
        }
        Ok(Some(0))
    }

    /// Error 8179: there is no such handle.
    pub(super) fn kept(&self, handle: i32) -> Result<(String, String), SqlError> {
        self.prepared
            .texts
            .get(&handle)
            .cloned()
            .ok_or_else(|| SqlError::new(8179, format!("Could not find prepared statement with handle {handle}.")))
    }

    pub(super) fn forget_prepared(&mut self, handle: i32) {
        self.prepared.texts.remove(&handle);
    }

    pub(super) fn keep(&mut self, given: &mut Given, declared: String, text: String) {
        self.prepared.last += 1;
        self.prepared.texts.insert(self.prepared.last, (declared, text));
        given.put(0, self.prepared.last.into());
    }

    /// Runs a text with parameters; `first` is the place of the first of them. Error 8178: one is missing.
    #[allow(clippy::too_many_arguments)]
    pub(super) fn run_text(
        &mut self,
        text: &str,
        declared: &str,
        given: &mut Given,
        first: usize,
        depth: usize,
        answers: &mut dyn Answers,
    ) -> Outcome<()> {
        let mut frame = Frame { in_try: given.in_try, ..Frame::default() };
        let mut places = Vec::new();
        for (n, (name, kind, default)) in self.declared(declared, &frame, answers)?.into_iter().enumerate() {
            let place = given.place(&name, first + n);
            let value = match (place.and_then(|p| given.parameters.get(p)), default) {
                (Some(Parameter { kind: from, value, .. }), _) => Self::stored_as(value.clone(), from, &kind)?,
                (None, Some(default)) => default,
                (None, None) => {
                    let text = format!(
                        "The parameterized query '({declared}){text:.60}' expects the parameter '{name}', which was not supplied."
                    );
                    return Err(SqlError::new(8178, text).into());
                }
            };
            if let Some(place) = place {
                places.push((place, name.clone(), kind.clone()));
            }
            frame.variables.insert(name.to_lowercase(), (kind, value));
        }
        let frame = self.nested(text, frame, depth, answers)?;
        for (place, name, kind) in places {
            if let (Some(parameter), Some((_, value))) =
                (given.parameters.get_mut(place), frame.variables.get(&name.to_lowercase()))
            {
                parameter.value = value.clone();
                parameter.kind = kind;
            }
        }
        Ok(())
    }

    /// Names, types and defaults of `@a int, @b nvarchar(10) = N'x' OUTPUT`.
    fn declared(
        &mut self,
        text: &str,
        frame: &Frame,
        answers: &mut dyn Answers,
    ) -> Outcome<Vec<(String, SqlType, Option<SqlValue>)>> {
        if text.trim().is_empty() {
            return Ok(Vec::new());
        }
        let words: Vec<&str> =
            text.split_whitespace().filter(|w| !matches!(w.to_lowercase().as_str(), "output" | "out")).collect();
        let mut plain = words.join(" ");
        for word in [" output,", " out,", " OUTPUT,", " OUT,"] {
            plain = plain.replace(word, ",");
        }
        let steps = sql::batch(&format!("DECLARE {plain}")).map_err(|e| e.0)?;
        let mut all = Vec::new();
        for step in steps {
            let Act::Declare(declared) = step.act else { continue };
            for one in declared {
                let Declaration::Scalar(name, default) = one.what else { continue };
                let kind = self.binder(frame).kind(&name)?;
                let default = match default {
                    Some(expr) => Some(self.scalar(&expr, Some(&kind), frame, answers)?),
                    None => None,
                };
                all.push((one.name, kind, default));
            }
        }
        Ok(all)
    }
}
