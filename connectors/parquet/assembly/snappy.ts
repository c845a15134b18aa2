/**
 * Decompresses a block of Snappy (its format description, 2011): the decompressed length as a varint, then
 * elements. The low two bits of an element's first byte are its kind: 0 a literal; 1 to 3 a copy of earlier
 * output, with an offset of 11, 16 or 32 bits. Returns 0 if the block is damaged or does not have exactly
 * `size` bytes.
 */
export function unpackSnappy(from: usize, bytes: usize, out: usize, size: usize): u32 {
  const end = from + bytes;
  const begin = out;
  const outEnd = out + size;
  let length: usize = 0;
  let shift: usize = 0;
  let byte: u32;
  do {
    if (from >= end || shift > 28) return 0;
    byte = load<u8>(from++);
    length |= (<usize>(byte & 127)) << shift;
    shift += 7;
  } while (byte > 127);
  if (length != size) return 0;
  while (from < end) {
    const tag = <u32>load<u8>(from++);
    const kind = tag & 3;
    if (kind == 0) {
      let count = <usize>(tag >> 2);
      if (count >= 60) {
        const extra = count - 59;
        if (extra > end - from) return 0;
        count = 0;
        for (let i: usize = 0; i < extra; i++) count |= (<usize>load<u8>(from + i)) << (i << 3);
        from += extra;
      }
      count++;
      if (count == 0 || count > end - from || count > outEnd - out) return 0;
      memory.copy(out, from, count);
      out += count;
      from += count;
      continue;
    }
    const more: usize = kind == 3 ? 4 : kind;
    if (more > end - from) return 0;
    const count: usize = kind == 1 ? ((tag >> 2) & 7) + 4 : (tag >> 2) + 1;
    const offset: usize =
      kind == 1 ? ((tag >> 5) << 8) | load<u8>(from) : kind == 2 ? load<u16>(from) : load<u32>(from);
    from += more;
    if (offset == 0 || offset > out - begin || count > outEnd - out) return 0;
    const source = out - offset;
    if (offset >= count) memory.copy(out, source, count);
    else for (let i: usize = 0; i < count; i++) store<u8>(out + i, load<u8>(source + i));
    out += count;
  }
  return u32(out == outEnd);
}
