import { Session, DataError } from '../../../index.ts';
import type { Pairs } from '../pairs.ts';

/** Columns user and item of a Parquet file, of whole numbers. */
export async function readParquetPairs(session: Session, file: string): Promise<Pairs> {
  const [users, items] = [[] as Int32Array[], [] as Int32Array[]];
  for await (const batch of session.read.parquet(file)) {
    users.push(idsOf(batch.getChild('user'), 'user', file));
    items.push(idsOf(batch.getChild('item'), 'item', file));
  }
  return { users: joined(users), items: joined(items) };
}

function idsOf(column: Iterable<unknown> | null, name: string, file: string): Int32Array {
  if (column === null)
    throw new DataError(`there is no column ${name}`, { phase: 'read', file, column: name });
  return Int32Array.from(column, (value) => {
    const id = typeof value === 'bigint' ? Number(value) : value;
    if (typeof id === 'number' && Number.isInteger(id) && id >= 0 && id <= 0x7f_ff_ff_ff) return id;
    throw new DataError(`${String(value)} is no id: ids are whole numbers from 0`, {
      phase: 'read',
      file,
      column: name,
    });
  });
}

function joined(parts: readonly Int32Array[]): Int32Array {
  const all = new Int32Array(parts.reduce((sum, { length }) => sum + length, 0));
  parts.reduce((filled, part) => (all.set(part, filled), filled + part.length), 0);
  return all;
}

/** Writes pairs as Parquet with the columns user and item. */
export async function writeParquetPairs(
  session: Session,
  { users, items }: Pairs,
  file: string,
): Promise<void> {
  const rows = function* () {
    for (let k = 0; k < users.length; k++) yield { user: users[k], item: items[k] };
  };
  await session.fromRows(rows).write.parquet(file, { overwrite: true });
}
