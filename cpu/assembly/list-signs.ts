/**
 * Estimates of scores from signs. If not all lists are searched (lists.ts), most columns are left out by an
 * estimate of xᵀd_v from the signs of d̂_v, a bit for each feature: Σ_k ±x_k m_k ‖d_v‖, where m_k is the mean of
 * |d_k| / ‖d‖. A table has the sums of four features for each of their 16 patterns of signs, as whole numbers
 * 0 .. 15; one instruction reads an entry for each of 16 columns.
 *
 *     signs      blocks of 16 columns: byte b of all columns has the signs of features 8b .. 8b + 7
 *     table      Uint8[width / 4][16]: for features 4g .. 4g + 3
 *
 * ("Fast scan" with codes of a bit: André, Kermarrec, Le Scouarnec, "Quicker ADC", TPAMI 2021, and Gao, Long,
 * "RaBitQ", SIGMOD 2024, which rotates, too: x is the rotated query here.)
 */

/** Columns of one block of signs. */
export const BLOCK: i32 = 16;

/** Writes the signs of 8-bit numbers: a bit of 1 for each number below zero, in blocks (see `signs`). */
export function packSigns(coarse: usize, width: usize, columns: i32, signs: usize): void {
  const bytes = width >> 3;
  for (let column = 0; column < columns; column++) {
    const block = signs + <usize>(column / BLOCK) * bytes * BLOCK + <usize>(column % BLOCK);
    for (let at: usize = 0; at < bytes; at += 2) {
      const bits = i8x16.bitmask(v128.load(coarse + <usize>column * width + (at << 3)));
      store<u8>(block + at * BLOCK, <u8>bits);
      store<u8>(block + (at + 1) * BLOCK, <u8>(bits >> 8));
    }
  }
}

@inline
function lookUp(table: v128, places: v128): v128 {
  if (ASC_FEATURE_RELAXED_SIMD) return i8x16.relaxed_swizzle(table, places);
  return i8x16.swizzle(table, places);
}

/** A bit for each column of a block of signs whose sum of table entries is above `floor`. */
function columnsAbove(block: usize, bytes: usize, table: usize, floor: i32): i32 {
  let low = i16x8.splat(0);
  let high = low;
  const end = block + bytes * BLOCK;
  while (block < end) {
    // The sum of 16 entries, each at most 15, fits in a byte.
    const stop = min(end, block + 8 * BLOCK);
    let sums = i8x16.splat(0);
    while (block < stop) {
      const signs = v128.load(block);
      sums = i8x16.add(sums, lookUp(v128.load(table), v128.and(signs, i8x16.splat(15))));
      sums = i8x16.add(sums, lookUp(v128.load(table, 16), i8x16.shr_u(signs, 4)));
      block += 16;
      table += 32;
    }
    low = i16x8.add(low, i16x8.extend_low_i8x16_u(sums));
    high = i16x8.add(high, i16x8.extend_high_i8x16_u(sums));
  }
  const floors = i16x8.splat(<i16>floor);
  return i16x8.bitmask(i16x8.gt_s(low, floors)) | (i16x8.bitmask(i16x8.gt_s(high, floors)) << 8);
}

/**
 * A bit for each column of the block of `column` that can reach `worst` by its signs; without signs all.
 * `away`: how far `worst` is above xᵀc.
 */
@inline
export function likelyColumns(
  column: i32,
  away: f32,
  radius: f32,
  signs: usize,
  bytes: usize,
  table: usize,
  bound: usize,
): i32 {
  // Bounds that are not numbers leave out nothing.
  if (signs == 0 || !(away > 0) || !(radius > 0)) return 0xffff;
  const least = (away / radius + load<f32>(bound, 16)) * load<f32>(bound, 20);
  if (!(least > 0)) return 0xffff;
  if (least > 32767) return 0;
  return columnsAbove(signs + <usize>(column / BLOCK) * bytes * BLOCK, bytes, table, <i32>least);
}
