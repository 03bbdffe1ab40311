//! Bytes read as a program that writes BSON, because blind mutation seldom gets nested lengths right.
//!
//! Documents that it writes are well formed but for what the program says: names and texts are raw bytes,
//! so they may repeat, be empty, or be no UTF-8. It ends with the bytes, so it is as bounded as they are.

/// Names that the product looks for, so that a program need not spell them.
const NAMES: &[&str] = &[
    "_id",
    "_data",
    "operationType",
    "ns",
    "db",
    "coll",
    "documentKey",
    "fullDocument",
    "fullDocumentBeforeChange",
    "updateDescription",
    "updatedFields",
    "removedFields",
    "truncatedArrays",
    "field",
    "newSize",
    "clusterTime",
    "wallTime",
    "lsid",
    "txnNumber",
    "splitEvent",
    "fragment",
    "of",
    "a",
    "a.b",
    "a.0.b",
    "type",
    "data",
    "id",
];

/// Kinds of BSON values, by operation.
const KINDS: &[u8] = &[
    0x03, 0x02, 0x10, 0x12, 0x01, 0x04, 0x05, 0x07, 0x08, 0x09, 0x0A, 0x0B, 0x0C, 0x0D, 0x0E, 0x0F, 0x11, 0x13, 0x06,
    0xFF, 0x7F,
];

/// What is left of the bytes.
pub struct Program<'a>(pub &'a [u8]);

impl<'a> Program<'a> {
    /// The next byte; zero behind the end.
    pub fn byte(&mut self) -> u8 {
        self.bytes(1).first().copied().unwrap_or(0)
    }

    pub fn bytes(&mut self, most: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(most.min(self.0.len()));
        self.0 = rest;
        taken
    }

    /// As a number of fixed size needs them.
    pub fn fixed<const N: usize>(&mut self) -> [u8; N] {
        let mut out = [0; N];
        let taken = self.bytes(N);
        out[..taken.len()].copy_from_slice(taken);
        out
    }

    /// Up to 63 raw bytes without a zero.
    pub fn text(&mut self) -> Vec<u8> {
        let most = usize::from(self.byte() & 63);
        self.bytes(most).iter().copied().filter(|b| *b != 0).collect()
    }

    fn name(&mut self) -> Vec<u8> {
        let choice = usize::from(self.byte());
        match NAMES.get(choice) {
            Some(name) => name.as_bytes().to_vec(),
            None => self.bytes(choice & 7).iter().copied().filter(|b| *b != 0).collect(),
        }
    }

    /// A document; deeper than about 240 levels it has no more children.
    pub fn document(&mut self, depth: usize) -> Vec<u8> {
        let mut body = Vec::new();
        // A count first, so that what follows a document is still program.
        for _ in 0..self.byte() % 32 {
            if self.0.is_empty() {
                break;
            }
            let operation = self.byte();
            let kind = KINDS[usize::from(operation) % KINDS.len()];
            let kind = if depth > 240 && matches!(kind, 0x03 | 0x04 | 0x0F) { 0x0A } else { kind };
            let name = self.name();
            let value = self.value(kind, depth);
            push(&mut body, kind, &name, &value);
        }
        closed(&body)
    }

    /// The bytes of one value of this kind.
    pub fn value(&mut self, kind: u8, depth: usize) -> Vec<u8> {
        match kind {
            0x03 | 0x04 => self.document(depth + 1),
            0x02 | 0x0D | 0x0E => string(&self.text()),
            0x0C => [string(&self.text()), self.fixed::<12>().to_vec()].concat(),
            0x05 => {
                let subtype = self.byte();
                let data = self.text();
                [&(data.len() as u32).to_le_bytes()[..], &[subtype], &data].concat()
            }
            0x0B => [self.text(), vec![0], self.text(), vec![0]].concat(),
            0x0F => {
                let parts = [string(&self.text()), self.document(depth + 1)].concat();
                [&(parts.len() as u32 + 4).to_le_bytes()[..], &parts].concat()
            }
            0x07 => self.fixed::<12>().to_vec(),
            0x08 => vec![self.byte()],
            0x10 => self.fixed::<4>().to_vec(),
            0x01 | 0x09 | 0x11 | 0x12 => self.fixed::<8>().to_vec(),
            0x13 => self.fixed::<16>().to_vec(),
            _ => Vec::new(),
        }
    }
}

/// Appends an element.
pub fn push(body: &mut Vec<u8>, kind: u8, name: &[u8], value: &[u8]) {
    body.push(kind);
    body.extend_from_slice(name);
    body.push(0);
    body.extend_from_slice(value);
}

/// Elements as a document.
pub fn closed(body: &[u8]) -> Vec<u8> {
    [&(body.len() as u32 + 5).to_le_bytes()[..], body, &[0]].concat()
}

/// A string value.
pub fn string(text: &[u8]) -> Vec<u8> {
    [&(text.len() as u32 + 1).to_le_bytes()[..], text, &[0]].concat()
}
