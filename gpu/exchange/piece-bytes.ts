/** Bytes of a piece of an exchange, the unit that one thread copies. */
export const PIECE_BYTES = 2 << 20;
