/**
 * The layout of an index of a model's items for large catalogues, a file next to the factors:
 * <model>/itemIndex/recommend.lists and similar.lists.
 *
 *     bytes 0 .. 7     the text FFLISTS2
 *     8 .. 11          H: bytes of the header, Uint32
 *     12 .. 15         CRC-32 of the header
 *     16 .. 16 + H     the header, one JSON object (IndexHeader), padded with spaces
 *     then             centers (Float32), starts (Uint32), guide (Uint32), codes (Int8): see ListParts
 *     then             of implicit data: the Gram matrix of all items (Float32), see gramOfItems
 *
 * Numbers are little-endian.
 */
export type IndexKind = 'recommend' | 'similar';

export const INDEX_FOLDER = 'itemIndex';
export const INDEX_MAGIC = 'FFLISTS2';
/** Bytes before the header. */
export const INDEX_PREFIX = 16;
const MOST_HEADER = 1 << 20;

export interface IndexHeader {
  readonly kind: IndexKind;
  /** Number of items, and of numbers of a vector that are searched. */
  readonly vectors: number;
  readonly rank: number;
  readonly normalized: boolean;
  readonly longest: number;
  /** The margin of searches by signs, in standard deviations (cpu/tasks/lists/search-lists.ts); null: none. */
  readonly margin: number | null;
  readonly lists: number;
  /** Columns of all lists, with unused ones. */
  readonly columns: number;
  readonly seed: number;
  /** Lists that a search probes by default, and the part of the n best items that it then found. */
  readonly probes: number;
  readonly recall: number;
  /** CRC-32 of the item factors that were indexed. */
  readonly factors: number;
  /** The factor in the Gram matrix, if the file has one. */
  readonly gram?: { readonly unobserved: number };
}

export type IndexSection = 'centers' | 'starts' | 'guide' | 'codes' | 'gram';

/** CRC-32 of each section. */
export type IndexSums = Readonly<Record<Exclude<IndexSection, 'gram'>, number> & { gram?: number }>;

/** Bytes of the codes of one vector. */
export function codeBytes(rank: number): number {
  return 16 * Math.ceil(rank / 16);
}

/** Numbers of a Gram matrix: see emptyGram. */
export function gramSize(rank: number): number {
  return 16 * Math.ceil(rank / 16) * rank;
}

/** Size and CRC-32 of the header, from the first bytes of a file. Throws an Error that names the fault. */
export function headerSize(
  prefix: Uint8Array,
  size: number,
): { readonly bytes: number; readonly sum: number } {
  if (prefix.length < INDEX_PREFIX) throw new Error('it is cut');
  if (!Array.from(INDEX_MAGIC).every((letter, i) => letter.charCodeAt(0) === prefix[i]))
    throw new Error('it is not an index of this release');
  const view = new DataView(prefix.buffer, prefix.byteOffset, prefix.byteLength);
  const bytes = view.getUint32(8, true);
  if (bytes > MOST_HEADER || INDEX_PREFIX + bytes > size) throw new Error('it is cut');
  return { bytes, sum: view.getUint32(12, true) };
}

/** The header, and the position of each section. Throws an Error if a file of `size` bytes is not that long. */
export function decodeHeader(text: string, size: number) {
  const { sums, ...header } = JSON.parse(text) as IndexHeader & { readonly sums: IndexSums };
  const { lists, columns, rank } = header;
  const centers = INDEX_PREFIX + text.length;
  const starts = centers + 4 * (lists + 3) * rank;
  const guide = starts + 4 * (lists + 1);
  const codes = guide + 16 * columns;
  const gram = codes + codeBytes(rank) * columns;
  const expected = gram + (header.gram ? 4 * gramSize(rank) : 0);
  if (size !== expected) throw new Error(`it has ${size} bytes, need ${expected}`);
  return { header: header as IndexHeader, sums, at: { centers, starts, guide, codes, gram } };
}

/** The index is of other items if this is a text, which says why. */
export function otherItems(
  { kind, vectors, rank }: IndexHeader,
  asked: IndexKind,
  items: number,
  features: number,
): string | undefined {
  return kind !== asked || vectors !== items || rank > features
    ? `it has ${vectors} items of rank ${rank}, the model ${items}`
    : undefined;
}

export const INDEX_ADVICE = 'Build it again by factorflow index MODEL, or remove the file';
