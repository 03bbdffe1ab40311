//! Text values, including those that are rendered only when somebody needs their characters.
//!
//! A source may hold a document in its own binary form and describe it as text (MongoDB's `after`
//! is extended JSON). [`Text::Lazy`] keeps the binary form; the JSON converter asks for the
//! characters already escaped, so the document is transcoded once, straight into the message.

use std::any::Any;
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

/// How the characters are to be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextForm {
    /// As they are.
    Plain,
    /// Escaped as the inside of a JSON string (no surrounding quotes).
    JsonEscaped,
}

/// Something that can write itself as UTF-8 text. Whoever knows the type may ask for what it holds.
pub trait RenderText: Any + Send + Sync + fmt::Debug {
    fn render(&self, form: TextForm, out: &mut Vec<u8>);
}

#[derive(Debug, Clone)]
pub enum Text {
    Static(&'static str),
    Shared(Arc<str>),
    Owned(Box<str>),
    Lazy(Arc<dyn RenderText>),
}

impl Text {
    /// What a lazy text is made from, if it is of this type.
    pub fn source<T: RenderText>(&self) -> Option<&T> {
        match self {
            Self::Lazy(text) => (&**text as &dyn Any).downcast_ref(),
            _ => None,
        }
    }

    /// The characters; renders a lazy text.
    pub fn as_str(&self) -> Cow<'_, str> {
        match self {
            Self::Static(s) => Cow::Borrowed(s),
            Self::Shared(s) => Cow::Borrowed(s),
            Self::Owned(s) => Cow::Borrowed(s),
            Self::Lazy(r) => {
                let mut out = Vec::new();
                r.render(TextForm::Plain, &mut out);
                Cow::Owned(match String::from_utf8(out) {
                    Ok(s) => s,
                    Err(e) => String::from_utf8_lossy(e.as_bytes()).into_owned(),
                })
            }
        }
    }
}

impl PartialEq for Text {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl From<&'static str> for Text {
    fn from(s: &'static str) -> Self {
        Self::Static(s)
    }
}
impl From<String> for Text {
    fn from(s: String) -> Self {
        Self::Owned(s.into_boxed_str())
    }
}
impl From<Arc<str>> for Text {
    fn from(s: Arc<str>) -> Self {
        Self::Shared(s)
    }
}
