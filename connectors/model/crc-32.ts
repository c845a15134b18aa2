const POLYNOMIAL = 0xedb8_8320;

const table = Uint32Array.from({ length: 256 }, (_, byte) => {
  let sum = byte;
  for (let bit = 0; bit < 8; bit++) sum = sum & 1 ? (sum >>> 1) ^ POLYNOMIAL : sum >>> 1;
  return sum;
});

/** The CRC-32 of a text in UTF-8, as zlib computes it; pages have no zlib. */
export function crc32(text: string): number {
  let sum = 0xffff_ffff;
  for (const byte of new TextEncoder().encode(text)) sum = table[(sum ^ byte) & 255] ^ (sum >>> 8);
  return (sum ^ 0xffff_ffff) >>> 0;
}
