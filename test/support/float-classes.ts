/**
 * Bits of numbers >= 0 of every class of float32: zero, subnormals, the borders of classes, and the borders of
 * rounding to 16 bits.
 */
const bits = [
  0, 1, 0x7fff, 0x8000, 0x8001, 0xffff, 0x1_0000, 0x7f_8000, 0x7f_ffff, 0x80_0000, 0x80_0001, 0x80_7fff,
  0x80_8001, 0x80_ffff, 0xff_ffff, 0x100_0000, 0x3f7f_ffff, 0x3f80_0000, 0x3f80_8000, 0x3f80_ffff,
  0x7f00_0000, 0x7f7f_0000, 0x7f7f_7fff,
];

/** Finite numbers of every class of float32, of both signs. The largest is the largest that has 16 bits. */
export const floatClasses = new Float32Array(
  Uint32Array.from([...bits, ...bits.map((one) => one + 2 ** 31)]).buffer,
);

/** The least number that is not subnormal. */
export const LEAST_NORMAL = 2 ** -126;
