//! Seeds as text.

/// The bytes of a text: two hexadecimal digits each, and `*N` repeats the byte before it up to N times in all.
pub fn bytes(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    for word in text.split_whitespace() {
        let (digits, times) = word.split_once('*').unwrap_or((word, "1"));
        assert!(digits.len() % 2 == 0 && (digits.len() == 2 || times == "1"), "{word}");
        for _ in 0..times.parse().expect("a number after *") {
            bytes.extend(digits.as_bytes().chunks(2).map(|pair| {
                let digit = |at: usize| char::from(pair[at]).to_digit(16).expect("a hexadecimal digit") as u8;
                digit(0) << 4 | digit(1)
            }));
        }
    }
    bytes
}
