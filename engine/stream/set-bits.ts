/** Bits from `offset` on; all are 1 where `bits` is undefined. */
interface Bits {
  readonly bits: Uint8Array | undefined;
  readonly offset: number;
  readonly length: number;
}

/** Sets the bits of `to` from `at` on, which are 0, to those given. */
export function setBits(to: Uint8Array, at: number, { bits, offset, length }: Bits): void {
  if (bits !== undefined && ((at | offset) & 7) === 0) {
    const whole = length >> 3;
    to.set(bits.subarray(offset >> 3, (offset >> 3) + whole), at >> 3);
    setOneByOne(to, at, { bits, offset, length }, whole << 3);
  } else setOneByOne(to, at, { bits, offset, length }, 0);
}

function setOneByOne(to: Uint8Array, at: number, { bits, offset, length }: Bits, from: number): void {
  for (let i = from; i < length; i++) {
    const bit = bits === undefined ? 1 : (bits[(offset + i) >> 3] >> ((offset + i) & 7)) & 1;
    to[(at + i) >> 3] |= bit << ((at + i) & 7);
  }
}
