import { crc32OfBytes } from '../connectors/model/decode-metadata.ts';
import {
  codeBytes,
  decodeHeader,
  headerSize,
  INDEX_ADVICE,
  INDEX_FOLDER,
  INDEX_PREFIX,
  type IndexHeader,
  type IndexKind,
  type IndexSums,
  gramSize,
  otherItems,
} from '../connectors/model/index-layout.ts';
import { sharedArray } from '../engine/partition.ts';
import type { ListIndex } from '../operators/serving/search.ts';
import { type ByteRange, readRanges, problem, RemoteFile, type RemoteOptions } from './remote-file.ts';
import { RequestCache, SharedRequest } from './shared-request.ts';

/** The columns of one list: see ListParts. */
export interface ListColumns {
  /** The place of the first one in the whole index. */
  readonly start: number;
  readonly items: Uint32Array;
  readonly lengths: Float32Array;
  readonly remainders: Float32Array;
  readonly scales: Float32Array;
  /** `width` bytes a column. */
  readonly codes: Uint8Array;
  readonly width: number;
}

/** Bytes that the header and the numbers before it have at most, usually. */
const FIRST_BYTES = 1024;

/** Bytes of lists that stay in memory. */
const MOST_BYTES = 1 << 26;

/** Ranges with at most this number of bytes between them are read in one request. */
const GAP_BYTES = 1 << 14;

/**
 * An index of items on a web server. The centers of all lists are read when it is opened, and their radii,
 * with 4 bytes of each item; a list is read when it is first probed. Throws DataError for a file that is cut
 * short, damaged, changed meanwhile, or of other items.
 */
export class PageLists {
  readonly header: IndexHeader;
  readonly #file: RemoteFile;
  readonly #at: ReturnType<typeof decodeHeader>['at'];
  readonly #starts: Uint32Array;
  readonly #centers: Float32Array;
  /** Of all columns. */
  readonly #lengths: Float32Array;
  readonly #sums: IndexSums;
  readonly #lists = new RequestCache<number, ListColumns>(MOST_BYTES);

  private constructor(
    file: RemoteFile,
    { header, at, sums }: ReturnType<typeof decodeHeader>,
    parts: Readonly<Record<'centers' | 'lengths', Float32Array>> & { readonly starts: Uint32Array },
  ) {
    [this.header, this.#file, this.#at, this.#sums] = [header, file, at, sums];
    [this.#starts, this.#centers, this.#lengths] = [parts.starts, parts.centers, parts.lengths];
  }

  /** Undefined if the model has no index of this kind. */
  static async open(
    folder: string,
    kind: IndexKind,
    { items, features }: { readonly items: number; readonly features: number },
    remote: RemoteOptions,
  ): Promise<PageLists | undefined> {
    const file = await RemoteFile.open(`${folder}/${INDEX_FOLDER}/${kind}.lists`, remote);
    if ('missing' in file) return undefined;
    const head = await readHead(file);
    const other = otherItems(head.header, kind, items, features);
    if (other !== undefined) throw problem(file.url, `the index is of another model: ${other}`, INDEX_ADVICE);
    const { at, header, sums } = head;
    const { lists, rank, columns } = header;
    const [first, lengths] = await Promise.all([
      file.slice(at.centers, at.guide),
      file.slice(at.guide, at.guide + 4 * columns),
    ]);
    const [own, numbers] = [new Uint8Array(first), 4 * (lists + 3) * rank];
    for (const [name, bytes] of [
      ['centers', own.subarray(0, numbers)],
      ['starts', own.subarray(numbers)],
    ] as const)
      if (crc32OfBytes(bytes) !== sums[name]) throw damaged(file, `the checksum of its ${name} is wrong`);
    const starts = new Uint32Array(first, numbers);
    checkStarts(file, starts, columns);
    return new PageLists(file, head, {
      centers: new Float32Array(first, 0, numbers / 4),
      lengths: new Float32Array(lengths),
      starts,
    });
  }

  /**
   * The centers and radii as an index of one column a list, for `rank-lists`: it has no items, so that only
   * chosen items are compared by it.
   */
  get ranking(): ListIndex {
    const { rank, vectors, normalized, longest, margin, lists } = this.header;
    const starts = sharedArray(Uint32Array, lists + 1);
    for (let list = 0; list <= lists; list++) starts[list] = list;
    const guide = sharedArray(Uint32Array, 4 * lists);
    const radii = new Float32Array(guide.buffer, 0, lists);
    for (let list = 0; list < lists; list++)
      if (this.#starts[list] < this.#starts[list + 1]) radii[list] = this.#lengths[this.#starts[list]];
    const centers = sharedArray(Float32Array, this.#centers.length);
    centers.set(this.#centers);
    const codes = sharedArray(Uint8Array, lists * codeBytes(rank));
    return { rank, vectors, normalized, longest, margin, centers, starts, guide, codes };
  }

  center(list: number): Float32Array {
    const { rank } = this.header;
    return this.#centers.subarray(list * rank, (list + 1) * rank);
  }

  /** The rows after the centers: see ListParts. */
  get features(): Float32Array {
    return this.#centers.subarray(this.header.lists * this.header.rank);
  }

  /** The Gram matrix of all items, if the file has the matrix with this weight. */
  async gram(unobserved: number, signal: AbortSignal): Promise<Float32Array | undefined> {
    const { gram, rank } = this.header;
    if (gram?.unobserved !== unobserved) return undefined;
    const bytes = await this.#file.slice(this.#at.gram, this.#at.gram + 4 * gramSize(rank), signal);
    if (crc32OfBytes(new Uint8Array(bytes)) !== this.#sums.gram)
      throw damaged(this.#file, 'the checksum of its Gram matrix is wrong');
    const values = sharedArray(Float32Array, gramSize(rank));
    values.set(new Float32Array(bytes));
    return values;
  }

  /** The columns of lists. Lists that are not in memory are read, those near each other in one request. */
  async columns(lists: readonly number[], signal: AbortSignal): Promise<ListColumns[]> {
    const found = new Map<number, SharedRequest<ListColumns>>();
    const missing: number[] = [];
    for (const list of lists) {
      const request = this.#lists.get(list);
      if (request) found.set(list, request);
      else missing.push(list);
    }
    for (const [list, request] of this.#send(missing)) found.set(list, request);
    return Promise.all(lists.map((list) => (found.get(list) as SharedRequest<ListColumns>).wait(signal)));
  }

  /** Reads lists together. */
  #send(lists: readonly number[]): (readonly [number, SharedRequest<ListColumns>])[] {
    const ranges = lists.map((list) => this.#rangesOf(list));
    const all = new SharedRequest((signal) => readRanges(this.#file, ranges.flat(), GAP_BYTES, signal));
    return lists.map((list, i) => {
      const request = new SharedRequest(async (signal) =>
        this.#decode(list, (await all.wait(signal)).slice(4 * i, 4 * i + 4)),
      );
      this.#lists.set(
        list,
        request,
        ranges[i].reduce((sum, { from, to }) => sum + to - from, 0),
      );
      return [list, request] as const;
    });
  }

  /** The remainders, scales and items of a list, and its codes. */
  #rangesOf(list: number): readonly ByteRange[] {
    const [from, to] = [this.#starts[list], this.#starts[list + 1]];
    const { columns, rank } = this.header;
    const width = codeBytes(rank);
    const { guide, codes } = this.#at;
    return [
      ...[1, 2, 3].map((row) => ({
        from: guide + 4 * (row * columns + from),
        to: guide + 4 * (row * columns + to),
      })),
      { from: codes + width * from, to: codes + width * to },
    ];
  }

  #decode(list: number, [remainders, scales, numbers, codes]: readonly ArrayBuffer[]): ListColumns {
    const [from, to] = [this.#starts[list], this.#starts[list + 1]];
    const { rank, vectors } = this.header;
    const items = new Uint32Array(numbers);
    if (items.some((item) => item >= vectors && item !== NO_ITEM))
      throw damaged(this.#file, 'a list has items that the model does not have');
    return {
      start: from,
      items,
      lengths: this.#lengths.subarray(from, to),
      remainders: new Float32Array(remainders),
      scales: new Float32Array(scales),
      codes: new Uint8Array(codes),
      width: codeBytes(rank),
    };
  }

  /** The error for an index whose items have other factors than the model's. */
  foreign(fault: string): Error {
    return problem(this.#file.url, `the index is of another model: ${fault}`, INDEX_ADVICE);
  }
}

/** In unused columns of a list. */
export const NO_ITEM = 0xffff_ffff;

async function readHead(file: RemoteFile): Promise<ReturnType<typeof decodeHeader>> {
  const { byteLength } = file;
  const start = new Uint8Array(await file.slice(0, Math.min(FIRST_BYTES, byteLength)));
  const { bytes, sum } = orDamaged(file, () => headerSize(start.subarray(0, INDEX_PREFIX), byteLength));
  const end = INDEX_PREFIX + bytes;
  const all = end <= start.length ? start : new Uint8Array(await file.slice(0, end));
  const header = all.subarray(INDEX_PREFIX, end);
  if (crc32OfBytes(header) !== sum) throw damaged(file, 'the checksum of its header is wrong');
  return orDamaged(file, () => decodeHeader(new TextDecoder('latin1').decode(header), byteLength));
}

function orDamaged<Result>(file: RemoteFile, read: () => Result): Result {
  try {
    return read();
  } catch (error) {
    throw damaged(file, error instanceof Error ? error.message : String(error), error);
  }
}

function checkStarts(file: RemoteFile, starts: Uint32Array, columns: number): void {
  const last = starts.length - 1;
  const ascend = starts.every((start, list) => start % 4 === 0 && (list === 0 || start >= starts[list - 1]));
  if (starts[0] !== 0 || starts[last] !== columns || !ascend)
    throw damaged(file, 'its lists are not those of its items');
}

function damaged({ url }: RemoteFile, fault: string, cause?: unknown): Error {
  return problem(url, `the index cannot be used: ${fault}`, INDEX_ADVICE, cause);
}

/** Columns of one block of signs (cpu/assembly/lists.ts). */
const BLOCK = 16;

/**
 * An index of the lists of these numbers, for one search. A search compares a block of columns with the worst
 * of the best so far, so each list begins at the same place of a block as in the whole index: then the same
 * columns are left out by their signs. Lists are in ascending order, as equal ones are ranked.
 */
export async function partOfLists(
  lists: PageLists,
  numbers: readonly number[],
  signal: AbortSignal,
): Promise<ListIndex> {
  const { rank, vectors, normalized, longest, margin, lists: wholeLists } = lists.header;
  const order = numbers.toSorted((a, b) => a - b);
  const columns = await lists.columns(order, signal);
  const starts = placesOf(columns);
  const centers = sharedArray(Float32Array, (order.length + 3) * rank);
  order.forEach((list, i) => centers.set(lists.center(list), i * rank));
  centers.set(lists.features, order.length * rank);
  const shape = { rank, vectors, normalized, longest, margin, wholeLists };
  return { ...shape, centers, starts, ...joined(columns, starts) };
}

/** The first column of each list, and the end. */
function placesOf(columns: readonly ListColumns[]): Uint32Array {
  const starts = sharedArray(Uint32Array, columns.length + 1);
  let end = 0;
  columns.forEach(({ start, items }, i) => {
    starts[i] = end + ((BLOCK + (start % BLOCK) - (end % BLOCK)) % BLOCK);
    end = starts[i] + items.length;
  });
  starts[columns.length] = end;
  return starts;
}

/** The columns of lists that begin at `starts`, with unused columns between them: see ListParts. */
function joined(columns: readonly ListColumns[], starts: Uint32Array): Pick<ListIndex, 'codes' | 'guide'> {
  const [width, all] = [columns[0].width, Math.max(BLOCK, starts[columns.length])];
  const codes = sharedArray(Uint8Array, width * all);
  const guide = sharedArray(Uint32Array, 4 * all);
  const numbers = new Float32Array(guide.buffer);
  guide.fill(NO_ITEM, 3 * all);
  columns.forEach((own, i) => {
    codes.set(own.codes, width * starts[i]);
    numbers.set(own.lengths, starts[i]);
    numbers.set(own.remainders, all + starts[i]);
    numbers.set(own.scales, 2 * all + starts[i]);
    guide.set(own.items, 3 * all + starts[i]);
  });
  return { codes, guide };
}
