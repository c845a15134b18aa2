import {
  Date_,
  Decimal,
  Dictionary,
  Duration,
  Field,
  FixedSizeBinary,
  Int32,
  List,
  Time,
} from 'apache-arrow';
import { appendFileSync, mkdirSync, readFileSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { ArrowSource } from '../../../connectors/arrow/arrow-source.ts';
import { DataError } from '../../../engine/errors.ts';
import { readTable } from '../text/text-testing.ts';
import { encode, folder, ratings, table, write } from './arrow-testing.ts';

const readFails = async (name: string, content: Uint8Array, pattern: RegExp) => {
  const file = join(folder, name);
  writeFileSync(file, content);
  const error = await readTable(new ArrowSource(file)).catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(DataError);
  expect(String(error)).toMatch(pattern);
  expect(String(error)).toContain(file);
};

describe('bad input', () => {
  test('data that are not Arrow', async () => {
    await readFails('empty.arrow', new Uint8Array(0), /there are no Arrow data: 0 bytes/);
    await readFails(
      'text.arrow',
      Buffer.from('user,item,rating\n1,2,3\n'),
      /not Arrow IPC data of version 0\.15 or newer/,
    );
    // A hole of 2 GiB that takes no room on the disk.
    const hole = join(folder, 'hole.arrow');
    writeFileSync(hole, 'ARROW1\0\0');
    truncateSync(hole, 2 ** 31);
    appendFileSync(hole, '\x00\x00\x00\x60ARROW1');
    await expect(readTable(new ArrowSource(hole))).rejects.toThrow(
      /a footer of 1\.5 GiB is too large: 1\.0 GiB are allowed/,
    );
    await readFails('mark.arrow', Buffer.from('ARROW1\0\0'), /cut off: its end is missing/);
    await readFails('end.arrow', Buffer.from([255, 255, 255, 255, 0, 0, 0, 0]), /have no schema/);
    await readFails(
      'long.arrow',
      Buffer.from([255, 255, 255, 255, 255, 255, 255, 127, 1, 2, 3]),
      /the schema: the data end in its middle/,
    );
    await readFails(
      'noise.arrow',
      Buffer.from([255, 255, 255, 255, 8, 0, 0, 0, 255, 255, 0, 0, 1, 2, 3, 4]),
      /the schema: the metadata are damaged: it points to/,
    );
  });

  test('a batch before its schema, two schemas, a file without its end', async () => {
    const one = encode([ratings(10)]);
    const schemaLength = 8 + Buffer.from(one).readInt32LE(4);
    await readFails('headless.arrow', one.slice(schemaLength), /a batch comes before the schema/);
    await readFails(
      'twice.arrow',
      Buffer.concat([one.slice(0, -8), one]),
      /batch 1: a second schema follows/,
    );
    await readFails(
      'footless.arrow',
      encode([ratings(10)], 'file').subarray(0, -1),
      /the Arrow file is cut off: its end is missing/,
    );
    await write(join(folder, 'whole.arrow'), [ratings(10)]);
    await readFails(
      'endless.arrow',
      readFileSync(join(folder, 'whole.arrow')).subarray(0, -6),
      /cut off: its end is missing/,
    );
  });

  test('numbers of types that Arrow does not have, also of lists and of dictionaries', async () => {
    const unit: number = 4;
    const duration = new Duration(unit);
    for (const type of [
      duration,
      new Date_(unit),
      new Time(unit, 32),
      new Decimal(2 ** 30, 38),
      new Decimal(2, 38, 129),
      new FixedSizeBinary(-4),
      new List(new Field('element', duration, true)),
      new Dictionary(duration, new Int32()),
    ]) {
      const rows = table([['a', type, []]]);
      await readFails('unit.arrow', encode([rows]), /a unit, .* of a type is -?\d+, which cannot be read/);
      await readFails('unit-file.arrow', encode([rows], 'file'), /a unit, .* of a type is -?\d+/);
    }
  });

  test('columns of one name', async () => {
    const twice = table([
      ['a', new Int32(), [1]],
      ['a', new Int32(), [2]],
    ]);
    await readFails('names.arrow', encode([twice]), /two columns have the same name/);
  });

  test('a folder with other schemas names the files', async () => {
    const path = join(folder, 'mixed');
    mkdirSync(path);
    await write(join(path, 'a.arrow'), [ratings(5)]);
    await write(join(path, 'b.arrow'), [ratings(5).select(['user', 'item'])]);
    await expect(readTable(new ArrowSource(path))).rejects.toThrow(
      /has no column "rating", which .*a\.arrow has \(.*b\.arrow/,
    );
  });
});
