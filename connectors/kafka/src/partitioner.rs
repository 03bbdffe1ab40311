//! Kafka's murmur2, as the Java client computes it.
//!
//! The producer leaves partitioning to librdkafka's `murmur2_random`; the tests here prove that the
//! two agree, because a key that changes its partition at switch-over loses its order. In the product
//! the hash serves to name a key in messages without showing it.

const SEED: u32 = 0x9747_b28c;
const M: u32 = 0x5bd1_e995;

/// 32-bit hash of a key.
pub fn murmur2(data: &[u8]) -> u32 {
    let mut hash = SEED ^ data.len() as u32;
    let (words, tail) = data.as_chunks::<4>();
    for word in words {
        let mut k = u32::from_le_bytes(*word).wrapping_mul(M);
        k ^= k >> 24;
        hash = hash.wrapping_mul(M) ^ k.wrapping_mul(M);
    }
    if !tail.is_empty() {
        for (at, byte) in tail.iter().enumerate() {
            hash ^= u32::from(*byte) << (8 * at);
        }
        hash = hash.wrapping_mul(M);
    }
    hash ^= hash >> 13;
    hash = hash.wrapping_mul(M);
    hash ^ hash >> 15
}

/// Partition of a key among `partitions` (more than 0), as Kafka's default partitioner chooses it.
pub fn partition_of(key: &[u8], partitions: i32) -> i32 {
    (murmur2(key) & 0x7fff_ffff) as i32 % partitions.max(1)
}

#[cfg(test)]
mod tests {
    use std::ptr;

    use proptest::prelude::*;

    use super::*;

    fn librdkafka(key: &[u8], partitions: i32) -> i32 {
        // SAFETY: with a key the function only hashes it; topic and opaques are not looked at.
        unsafe {
            rdkafka_sys::rd_kafka_msg_partitioner_murmur2_random(
                ptr::null(),
                key.as_ptr().cast(),
                key.len(),
                partitions,
                ptr::null_mut(),
                ptr::null_mut(),
            )
        }
    }

    /// Values of the Java client's own unit test.
    #[test]
    fn hashes_of_java() {
        for (text, hash) in [
            ("21", -973_932_308i32),
            ("foobar", -790_332_482),
            ("a-little-bit-long-string", -985_981_536),
            ("a-little-bit-longer-string", -1_486_304_829),
            ("lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58_897_971),
            ("abc", 479_470_107),
        ] {
            assert_eq!(murmur2(text.as_bytes()) as i32, hash, "{text}");
        }
    }

    #[test]
    fn kfk_02_partitions_of_java() {
        for (key, partitions, expected) in [
            ("354afe16-939a-4ea8-8e17-8bb0840b6886", 10, 4),
            ("f562ac3b-2224-4e25-a0ab-56094e10c239", 10, 5),
            ("TT0124", 15, 10),
            ("{\"id\":1}", 6, 0),
        ] {
            assert_eq!(partition_of(key.as_bytes(), partitions), expected, "{key}");
            assert_eq!(librdkafka(key.as_bytes(), partitions), expected, "{key}");
        }
    }

    proptest! {
        #[test]
        fn librdkafka_agrees(key in prop::collection::vec(any::<u8>(), 0..80), partitions in 1i32..1000) {
            prop_assert_eq!(partition_of(&key, partitions), librdkafka(&key, partitions));
        }
    }
}
