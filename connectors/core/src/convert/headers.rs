//! Headers of a record as names and bytes, with the last list kept.
//!
//! Most records of a task share one list of headers, so the encoded form is looked up by pointer and
//! made anew only when another list comes.

use std::sync::Arc;

use super::{Converter, Written};
use crate::delivery::EncodedHeaders;
use crate::error::{Error, ErrorKind, Phase, Result};
use crate::record::Headers;

pub struct HeaderEncoder {
    converter: Box<dyn Converter>,
    none: EncodedHeaders,
    /// Held, so that its address cannot be another list's meanwhile.
    last: Option<(Headers, EncodedHeaders)>,
}

impl HeaderEncoder {
    pub fn new(converter: Box<dyn Converter>) -> Self {
        Self { converter, none: EncodedHeaders::default(), last: None }
    }

    /// Class of the converter, for reports.
    pub fn class(&self) -> &'static str {
        self.converter.class()
    }

    /// `topic` is that of the record; what depends on it must not be in a header.
    pub fn encode(&mut self, topic: &Arc<str>, headers: &Headers) -> Result<&EncodedHeaders> {
        if headers.is_empty() {
            return Ok(&self.none);
        }
        let known = self.last.as_ref().is_some_and(|(list, _)| Arc::ptr_eq(list, headers));
        if !known {
            let encoded = Self::convert(&mut *self.converter, topic, headers)?;
            self.last = Some((headers.clone(), encoded));
        }
        Ok(self.last.as_ref().map_or(&self.none, |(_, encoded)| encoded))
    }

    fn convert(converter: &mut dyn Converter, topic: &Arc<str>, headers: &Headers) -> Result<EncodedHeaders> {
        let mut encoded = Vec::with_capacity(headers.len());
        for header in headers.iter() {
            let mut bytes = Vec::new();
            let written =
                converter.convert(topic, header.schema.as_ref(), &header.value, &mut bytes).map_err(|mut error| {
                    error.message = format!("header {}: {}", header.name, error.message);
                    error
                })?;
            if written == Written::Waiting {
                // Such a class is refused as a converter of headers.
                let text = format!("header {}: its converter cannot write it at once", header.name);
                return Err(Error::new(ErrorKind::Internal, Phase::Convert, text));
            }
            encoded.push((header.name.clone(), (written == Written::Bytes).then_some(bytes)));
        }
        Ok(Arc::new(encoded))
    }
}
