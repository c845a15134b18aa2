const POLYNOMIAL = 0xedb8_8320;

const table = Uint32Array.from({ length: 256 }, (_, byte) => {
  let sum = byte;
  for (let bit = 0; bit < 8; bit++) sum = sum & 1 ? (sum >>> 1) ^ POLYNOMIAL : sum >>> 1;
  return sum;
});

/** The CRC-32 of a text in UTF-8, as zlib computes it; pages have no zlib. */
export function crc32(text: string): number {
  return crc32OfBytes(new TextEncoder().encode(text));
}

/** The CRC-32 of bytes that follow bytes of which `sum` is the CRC-32. */
export function crc32OfBytes(bytes: Uint8Array, sum = 0): number {
  let rest = sum ^ 0xffff_ffff;
  for (const byte of bytes) rest = table[(rest ^ byte) & 255] ^ (rest >>> 8);
  return (rest ^ 0xffff_ffff) >>> 0;
}
