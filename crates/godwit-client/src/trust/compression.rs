//! Certificates compressed with brotli (RFC 8879), which is the one way that Chromium and those built on it know.
//! rustls has zlib by itself.
//!
//! Compression happens once for each chain: what comes of it is kept ([`compression_cache`]), for TCP and QUIC together.

use std::io::{Read, Write};
use std::sync::Arc;

use rustls::CertificateCompressionAlgorithm;
use rustls::compress::{
    CertCompressor, CertDecompressor, CompressionCache, CompressionFailed, CompressionLevel,
    DecompressionFailed, ZLIB_COMPRESSOR, ZLIB_DECOMPRESSOR,
};

/// Chains times algorithms whose compressed form is kept: some KiB each.
const CACHED: usize = 256;
/// What brotli's reader and writer take at a time.
const BUFFER: usize = 4 << 10;
/// Base-two logarithm of the window: chains are shorter than 64 KiB.
const WINDOW: u32 = 16;

/// The ways to compress a certificate, the preferred first.
pub fn compressors() -> Vec<&'static dyn CertCompressor> {
    vec![&Brotli, ZLIB_COMPRESSOR]
}

/// The ways in which a server may have compressed its certificate.
pub fn decompressors() -> Vec<&'static dyn CertDecompressor> {
    vec![&Brotli, ZLIB_DECOMPRESSOR]
}

/// Where compressed chains are kept.
pub fn compression_cache() -> Arc<CompressionCache> {
    Arc::new(CompressionCache::new(CACHED))
}

#[derive(Debug)]
struct Brotli;

impl CertCompressor for Brotli {
    fn compress(&self, input: Vec<u8>, level: CompressionLevel) -> Result<Vec<u8>, CompressionFailed> {
        // The best that brotli can takes ten times as long as this for some bytes less, and a handshake waits for it.
        let quality = if level == CompressionLevel::Amortized { 9 } else { 4 };
        let mut writer = brotli::CompressorWriter::new(Vec::new(), BUFFER, quality, WINDOW);
        writer.write_all(&input).map_err(|_| CompressionFailed)?;
        Ok(writer.into_inner())
    }

    fn algorithm(&self) -> CertificateCompressionAlgorithm {
        CertificateCompressionAlgorithm::Brotli
    }
}

impl CertDecompressor for Brotli {
    /// `output` is as long as the peer has said, which rustls limits to 64 KiB; not a byte more is produced.
    fn decompress(&self, input: &[u8], output: &mut [u8]) -> Result<(), DecompressionFailed> {
        let mut reader = brotli::Decompressor::new(input, BUFFER);
        reader.read_exact(output).map_err(|_| DecompressionFailed)?;
        match reader.read(&mut [0]) {
            Ok(0) => Ok(()),
            _ => Err(DecompressionFailed),
        }
    }

    fn algorithm(&self) -> CertificateCompressionAlgorithm {
        CertificateCompressionAlgorithm::Brotli
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chain() -> Vec<u8> {
        let names: Vec<String> = (0..60).map(|number| format!("host-{number}.shop.example.test")).collect();
        rcgen::generate_simple_self_signed(names).unwrap().cert.der().to_vec()
    }

    #[test]
    fn every_algorithm_gives_back_what_it_was_given() {
        let chain = chain();
        for (compressor, decompressor) in compressors().into_iter().zip(decompressors()) {
            assert_eq!(compressor.algorithm(), decompressor.algorithm());
            for level in [CompressionLevel::Interactive, CompressionLevel::Amortized] {
                let compressed = compressor.compress(chain.clone(), level).unwrap();
                assert!(compressed.len() < chain.len() / 2, "{} of {}", compressed.len(), chain.len());
                let mut output = vec![0; chain.len()];
                decompressor.decompress(&compressed, &mut output).unwrap();
                assert_eq!(output, chain);
            }
        }
    }

    #[test]
    fn what_is_not_as_long_as_was_said_is_refused() {
        let chain = chain();
        let compressed = Brotli.compress(chain.clone(), CompressionLevel::Interactive).unwrap();
        for wrong in [0, 1, chain.len() - 1, chain.len() + 1, 60_000] {
            assert!(Brotli.decompress(&compressed, &mut vec![0; wrong]).is_err(), "{wrong}");
        }
        for end in 0..compressed.len() {
            assert!(Brotli.decompress(&compressed[..end], &mut vec![0; chain.len()]).is_err(), "{end}");
        }
        // A bomb: a million times its own length, if it were let.
        let bomb = Brotli.compress(vec![0; 8 << 20], CompressionLevel::Interactive).unwrap();
        assert!(bomb.len() < 1 << 10);
        assert!(Brotli.decompress(&bomb, &mut vec![0; 1 << 16]).is_err());
    }
}
