//! Rules applied to the bytes of one document.
//!
//! Level by level: the fields of a level are noted, the rules change the notes in their order and
//! mark the fields that they go on in, then the level is written. So every byte is copied once, however
//! many rules there are. Documents in an array are taken one by one; arrays in arrays are left alone.
//!
//! Of fields with one name only the last counts, as everywhere: rules go on in that one, and leaving
//! out or renaming takes the others along.
//!
//! Damaged bytes are errors where rules look and copied as they are elsewhere; whoever makes text of
//! the result checks it. The notes are no more than the fields of the levels that lead to one place.

use std::borrow::Cow;
use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

use super::FieldError;
use super::dotted::{self, Relation};
use super::rule::{Action, Rule};
use crate::raw::{Element, Elements, MAX_DEPTH, Malformed, kind};

/// A field of a level that is being changed.
struct Field<'a> {
    /// Where the field stood at first: tasks name it by that.
    id: usize,
    kind: u8,
    name: Cow<'a, [u8]>,
    value: &'a [u8],
    gone: bool,
}

/// A rule that goes on inside of a field, with this part of its path.
#[derive(Clone, Copy)]
struct Task {
    field: usize,
    rule: usize,
    depth: usize,
}

pub(super) struct Rewrite<'a> {
    rules: &'a [Arc<Rule>],
    /// Both are stacks: every level adds its own and takes them away.
    fields: Vec<Field<'a>>,
    tasks: Vec<Task>,
    out: Vec<u8>,
}

/// A level whose fields are noted.
struct Level<'a> {
    bytes: &'a [u8],
    /// First of its fields and tasks.
    fields: usize,
    tasks: usize,
    changed: bool,
}

impl<'a> Rewrite<'a> {
    pub(super) fn new(rules: &'a [Arc<Rule>]) -> Self {
        Self { rules, fields: Vec::new(), tasks: Vec::new(), out: Vec::new() }
    }

    /// `None`: no rule concerns it.
    pub(super) fn document(mut self, bytes: &'a [u8]) -> Result<Option<Vec<u8>>, FieldError> {
        let mut level = self.level(bytes)?;
        for rule in 0..self.rules.len() {
            self.apply(rule, 0, &mut level)?;
        }
        self.result(&level)
    }

    /// The same for a document whose names are dotted paths.
    pub(super) fn updated(mut self, bytes: &'a [u8]) -> Result<Option<Vec<u8>>, FieldError> {
        let mut level = self.level(bytes)?;
        for rule in 0..self.rules.len() {
            self.apply_dotted(rule, &mut level)?;
        }
        self.result(&level)
    }

    fn result(mut self, level: &Level<'a>) -> Result<Option<Vec<u8>>, FieldError> {
        if !level.changed && self.tasks.is_empty() {
            return Ok(None);
        }
        self.out.reserve(level.bytes.len());
        self.write(level, 0)?;
        if self.out.len() < self.out.capacity() / 2 {
            // What was left out was most of it: its memory is not kept as long as the record.
            self.out.shrink_to_fit();
        }
        Ok(Some(self.out))
    }

    fn level(&mut self, bytes: &'a [u8]) -> Result<Level<'a>, Malformed> {
        let level = Level { bytes, fields: self.fields.len(), tasks: self.tasks.len(), changed: false };
        for element in Elements::of(bytes)? {
            let Element { kind, name, value } = element?;
            let id = self.fields.len();
            self.fields.push(Field { id, kind, name: Cow::Borrowed(name), value, gone: false });
        }
        Ok(level)
    }

    /// Applies the part `depth` of a rule's path to a level.
    fn apply(&mut self, rule: usize, depth: usize, level: &mut Level<'a>) -> Result<(), FieldError> {
        let Rule { path, action } = &*self.rules[rule];
        let Some(wanted) = path.get(depth) else { return Ok(()) };
        let is = |field: &Field<'_>, name: &[u8]| !field.gone && *field.name == *name;
        let fields = &mut self.fields[level.fields..];
        let Some(at) = fields.iter().rposition(|f| is(f, wanted)) else { return Ok(()) };
        if depth + 1 < path.len() {
            let (field, kind) = (fields[at].id, fields[at].kind);
            if matches!(kind, kind::DOCUMENT | kind::ARRAY) {
                self.tasks.push(Task { field, rule, depth: depth + 1 });
            }
            return Ok(());
        }
        if let Action::Rename(name) = action
            && fields.iter().any(|f| is(f, name))
        {
            return Err(taken(name));
        }
        fields.iter_mut().filter(|f| is(f, wanted)).for_each(|f| f.gone = true);
        if let Action::Rename(name) = action {
            let Field { id, kind, value, .. } = fields[at];
            self.fields.push(Field { id, kind, name: Cow::Borrowed(name), value, gone: false });
        }
        level.changed = true;
        Ok(())
    }

    /// Applies a rule to a level whose names are dotted paths.
    fn apply_dotted(&mut self, rule: usize, level: &mut Level<'a>) -> Result<(), FieldError> {
        let Rule { path, action } = &*self.rules[rule];
        let mut renamed = Vec::new();
        for field in self.fields[level.fields..].iter_mut().filter(|f| !f.gone) {
            match (dotted::relation(&field.name, path), action) {
                (None, _) => {}
                (Some(Relation::Outer { depth, element }), _) => {
                    // An element that is an array itself is out of reach, as it is in documents.
                    if field.kind == kind::DOCUMENT || (field.kind == kind::ARRAY && !element) {
                        self.tasks.push(Task { field: field.id, rule, depth });
                    }
                }
                (Some(_), Action::Exclude) => {
                    field.gone = true;
                    level.changed = true;
                }
                (Some(relation), Action::Rename(name)) => {
                    if let Some(name) = relation.renamed(&field.name, name) {
                        let &mut Field { id, kind, value, .. } = field;
                        renamed.push(Field { id, kind, name: Cow::Owned(name), value, gone: false });
                    }
                }
            }
        }
        if renamed.is_empty() {
            return Ok(());
        }
        // An update of every element of a long array has many names.
        let mut names: HashSet<&[u8]> =
            self.fields[level.fields..].iter().filter(|f| !f.gone).map(|f| &*f.name).collect();
        if let Some(field) = renamed.iter().find(|f| !names.insert(&f.name)) {
            return Err(taken(&field.name));
        }
        let moved: HashSet<usize> = renamed.iter().map(|f| f.id).collect();
        for field in &mut self.fields[level.fields..] {
            field.gone |= moved.contains(&field.id);
        }
        self.fields.extend(renamed);
        level.changed = true;
        Ok(())
    }

    /// Writes a level and forgets it.
    fn write(&mut self, level: &Level<'a>, nesting: usize) -> Result<(), FieldError> {
        let tasks = level.tasks..self.tasks.len();
        if level.changed || !tasks.is_empty() {
            // By field, and for each field in the order of the rules.
            self.tasks[tasks.clone()].sort_by_key(|task| task.field);
            let start = self.open();
            // Inner levels are above this one while they are written.
            for at in level.fields..self.fields.len() {
                let field = &self.fields[at];
                if field.gone {
                    continue;
                }
                let (id, kind, value) = (field.id, field.kind, field.value);
                name(kind, &field.name, &mut self.out);
                let own = &self.tasks[tasks.clone()];
                let first = tasks.start + own.partition_point(|task| task.field < id);
                let end = tasks.start + own.partition_point(|task| task.field <= id);
                self.value(kind, value, first..end, nesting)?;
            }
            self.close(start)?;
        } else {
            self.out.extend_from_slice(level.bytes);
        }
        self.fields.truncate(level.fields);
        self.tasks.truncate(level.tasks);
        Ok(())
    }

    fn value(&mut self, kind: u8, value: &'a [u8], tasks: Range<usize>, nesting: usize) -> Result<(), FieldError> {
        match kind {
            _ if tasks.is_empty() => self.out.extend_from_slice(value),
            kind::DOCUMENT => self.inner(value, tasks, nesting + 1)?,
            kind::ARRAY => {
                let start = self.open();
                for element in Elements::of(value)? {
                    let element = element?;
                    name(element.kind, element.name, &mut self.out);
                    match element.kind {
                        kind::DOCUMENT => self.inner(element.value, tasks.clone(), nesting + 2)?,
                        _ => self.out.extend_from_slice(element.value),
                    }
                }
                self.close(start)?;
            }
            _ => self.out.extend_from_slice(value),
        }
        Ok(())
    }

    fn inner(&mut self, bytes: &'a [u8], tasks: Range<usize>, nesting: usize) -> Result<(), FieldError> {
        if nesting > MAX_DEPTH {
            return Err(Malformed("documents are nested too deeply").into());
        }
        let mut level = self.level(bytes)?;
        for at in tasks {
            let Task { rule, depth, .. } = self.tasks[at];
            self.apply(rule, depth, &mut level)?;
        }
        self.write(&level, nesting)
    }

    /// Begins a document; its length comes with its end.
    fn open(&mut self) -> usize {
        let start = self.out.len();
        self.out.extend_from_slice(&[0; 4]);
        start
    }

    fn close(&mut self, start: usize) -> Result<(), Malformed> {
        self.out.push(0);
        let length = i32::try_from(self.out.len() - start).map_err(|_| Malformed("a document is too long"))?;
        self.out[start..start + 4].copy_from_slice(&length.to_le_bytes());
        Ok(())
    }
}

fn name(kind: u8, name: &[u8], out: &mut Vec<u8>) {
    out.push(kind);
    out.extend_from_slice(name);
    out.push(0);
}

fn taken(name: &[u8]) -> FieldError {
    FieldError::Taken(String::from_utf8_lossy(name).into_owned())
}
