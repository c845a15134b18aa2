import { FlatTable } from '../../connectors/arrow/verify-metadata.ts';

/** Types of Arrow (the union Type in Schema.fbs) whose values a page reads, or whose buffers it skips. */
export const arrowTypes = {
  int: 2,
  float: 3,
  binary: 4,
  utf8: 5,
  bool: 6,
  decimal: 7,
  date: 8,
  time: 9,
  timestamp: 10,
  interval: 11,
  list: 12,
  struct: 13,
  fixedBinary: 15,
  fixedList: 16,
  map: 17,
  duration: 18,
  largeBinary: 19,
  largeUtf8: 20,
  largeList: 21,
} as const;

const { list, struct, fixedList, map, binary, utf8, largeBinary, largeUtf8, largeList } = arrowTypes;

/** A column of a file, or a child of one. */
export interface ArrowField {
  readonly name: string;
  readonly type: number;
  /** Bits of an int; precision of a float (0 half, 1 single, 2 double); length of a fixed list. */
  readonly size: number;
  readonly signed: boolean;
  readonly isDictionary: boolean;
  readonly children: readonly ArrowField[];
  /** Its position among the field nodes of a batch, and of its first buffer, the validity bits. */
  readonly entry: number;
  readonly buffer: number;
}

/**
 * The columns of a footer that was verified. Throws an Error for types whose buffers cannot be counted, such
 * as views of texts.
 */
export function arrowFields(footer: Uint8Array): ArrowField[] {
  const schema = FlatTable.root(footer).table(1);
  if (schema === undefined) throw new Error('its footer has no schema');
  if (schema.short(0) !== 0) throw new Error('its numbers are big-endian');
  const next = { entry: 0, buffer: 0 };
  return schema.tables(1).map((field) => fieldOf(field, next));
}

function fieldOf(table: FlatTable, next: { entry: number; buffer: number }): ArrowField {
  const [name, type] = [table.text(0), table.byte(2)];
  const { entry, buffer } = next;
  const isDictionary = table.has(4);
  next.entry++;
  next.buffer += isDictionary ? 2 : buffersOf(name, type);
  const details = table.table(3);
  const size = type === arrowTypes.float ? (details?.short(0) ?? 0) : (details?.int(0) ?? 0);
  const signed = type === arrowTypes.int && details?.byte(1) === 1;
  const children = isDictionary ? [] : table.tables(5).map((child) => fieldOf(child, next));
  return { name, type, size, signed, isDictionary, children, entry, buffer };
}

/** The number of buffers of a field, without its children's. */
function buffersOf(name: string, type: number): number {
  if (type === struct || type === fixedList) return 1;
  if ([binary, utf8, largeBinary, largeUtf8].some((one) => one === type)) return 3;
  if ([list, map, largeList].some((one) => one === type)) return 2;
  if (Object.values(arrowTypes).some((one) => one === type)) return 2;
  throw new Error(`its column ${name} is of a type that pages do not read (${type})`);
}
