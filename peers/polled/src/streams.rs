//! The streams of a connection, as the protocol wants them.

use anyhow::Result;
use bytes::Bytes;
use godwit::polled::{PolledConnection, ReadChunk};
use godwit::{Direction, StreamId};
use peer_perf::polled::{Read, Streams};

pub struct Over<'a, 'b>(pub &'a mut PolledConnection<'b>);

impl Streams for Over<'_, '_> {
    fn open(&mut self) -> Result<Option<u64>> {
        Ok(self.0.open(Direction::Bidirectional).map(StreamId::as_u64))
    }

    fn read(&mut self, id: u64, buffer: &mut [u8], take: impl FnOnce(&[u8])) -> Result<Read> {
        Ok(match self.0.read(StreamId::from_u64(id), buffer.len())? {
            ReadChunk::Data(data) => {
                take(&data);
                Read::Data { len: data.len(), end: false }
            }
            ReadChunk::Finished => Read::Data { len: 0, end: true },
            ReadChunk::Blocked => Read::Blocked,
        })
    }

    fn write(&mut self, id: u64, data: Bytes, end: bool) -> Result<Option<usize>> {
        let (id, wanted) = (StreamId::from_u64(id), data.len());
        let taken = self.0.write(id, data)?;
        if end && taken == wanted {
            self.0.finish(id)?;
        }
        Ok(Some(taken).filter(|taken| *taken > 0 || wanted == 0))
    }

    fn stop(&mut self, id: u64) {
        let _ = self.0.stop_sending(StreamId::from_u64(id), 0u32);
    }
}
