/**
 * Writes test/golden/parquet/*.parquet with DuckDB: one small table under every codec, page version and
 * encoding that DuckDB offers, and a few shapes of files in the wild. Run it again only to add files; tests
 * compare our reading of the files with DuckDB's.
 *
 *     node test/golden/write-parquet.ts
 */
import { DuckDBInstance } from '@duckdb/node-api';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';

const folder = join(import.meta.dirname, 'parquet');
const codecs = ['uncompressed', 'snappy', 'gzip', 'zstd', 'brotli', 'lz4_raw'];
/** Rows of two row groups, of which DuckDB's smallest have 2,048. */
const rows = 2500;

const ratings = `
  SELECT (i % 97)::INTEGER AS "user", (i * 7 % 53)::INTEGER AS item, ((i % 10 + 1) / 2.0)::FLOAT AS rating
  FROM range(${rows}) t(i)`;

/** Every type that ids and ratings come in, with nulls in some. */
const mixed = `
  SELECT i::INTEGER AS small, (i * 3000000007)::BIGINT AS big, 'id-' || (i % 30) AS word,
         CASE WHEN i % 3 = 0 THEN NULL ELSE (i % 10)::FLOAT END AS rating, (i / 7.0)::DOUBLE AS wide,
         CASE WHEN i % 5 = 0 THEN NULL ELSE i % 2 = 0 END AS flag, TIMESTAMP '2020-01-01' + INTERVAL (i) SECOND AS at
  FROM range(400) t(i)`;

const unique = `SELECT (hash(i) % 2000000000)::INTEGER AS small, (hash(i) % 9000000000000000000)::BIGINT AS big,
  'word ' || hash(i * 3) AS word, (hash(i * 5) % 1000 / 7.0)::FLOAT AS rating FROM range(300) t(i)`;

const fullRange = `SELECT ((hash(i) % 4294967296)::BIGINT - 2147483648)::INTEGER AS small, (hash(i * 3) % 4294967296)::UINTEGER AS natural,
  CASE WHEN i % 7 = 0 THEN NULL ELSE ((hash(i * 5) % 4294967296)::BIGINT - 2147483648)::INTEGER END AS some, 'word ' || (i % 9) AS word, (i / 2)::FLOAT AS rating,
  ((hash(i * 7) % 65536)::INTEGER - 32768)::SMALLINT AS short
  FROM range(${rows}) t(i)`;

const files: Record<string, readonly [query: string, options: string]> = {
  'empty-with-schema': [`${ratings} LIMIT 0`, 'COMPRESSION zstd'],
  'list-features': [
    'SELECT i::INTEGER AS id, [i / 2.0, i / 4.0, -i]::FLOAT[] AS features FROM range(50) t(i)',
    'COMPRESSION snappy',
  ],
  'all-null': ['SELECT i::INTEGER AS item, NULL::FLOAT AS rating FROM range(20) t(i)', 'COMPRESSION snappy'],
  'odd-names': [
    'SELECT 1::INTEGER AS "a.b", 2::INTEGER AS "a b", 3::INTEGER AS "ä", 4::INTEGER AS a',
    'COMPRESSION uncompressed',
  ],
  unsigned: [
    'SELECT i::UTINYINT AS u8, (60000 + i)::USMALLINT AS u16, (4294967000 + i)::UINTEGER AS u32, i::TINYINT - 100 AS s8 FROM range(50) t(i)',
    'COMPRESSION snappy',
  ],
  'special-floats': [
    "SELECT unnest(['NaN', 'Infinity', '-Infinity', '-0', '1e-45', '3.4028235e38']::FLOAT[]) AS rating",
    'COMPRESSION snappy',
  ],
  'large-dictionary': [
    `SELECT (i // 20)::INTEGER AS item FROM range(20000) t(i)`,
    'COMPRESSION gzip, ROW_GROUP_SIZE 20480',
  ],
};
for (const codec of codecs) {
  for (const version of ['V1', 'V2']) {
    files[`ratings-${codec}-${version}`] = [
      ratings,
      `COMPRESSION ${codec}, PARQUET_VERSION ${version}, ROW_GROUP_SIZE 2048`,
    ];
    files[`mixed-${codec}-${version}`] = [mixed, `COMPRESSION ${codec}, PARQUET_VERSION ${version}`];
  }
}
for (const version of ['V1', 'V2']) {
  // Distinct values: no dictionary; plain in V1, delta and byte-stream-split encodings in V2.
  files[`unique-${version}`] = [
    unique,
    `COMPRESSION snappy, PARQUET_VERSION ${version}, DICTIONARY_SIZE_LIMIT 1`,
  ];
}
for (const codec of codecs) {
  // Whole ranges of 32 bits, whose differences need 33, beside columns that need none; in one file no other
  // column.
  files[`full-range-${codec}`] = [
    fullRange,
    `COMPRESSION ${codec}, PARQUET_VERSION V2, DICTIONARY_SIZE_LIMIT 1, ROW_GROUP_SIZE 2048`,
  ];
}
files['full-range-alone'] = [
  'SELECT unnest([-2147483648, 2147483647, 0, -1, 2147483647, -2147483648])::INTEGER AS small',
  'COMPRESSION zstd, PARQUET_VERSION V2, DICTIONARY_SIZE_LIMIT 1',
];

await mkdir(folder, { recursive: true });
const connection = await (await DuckDBInstance.create(':memory:', { threads: '1' })).connect();
for (const [name, [query, options]] of Object.entries(files)) {
  await connection.run(
    `COPY (${query}) TO '${join(folder, `${name}.parquet`)}' (FORMAT parquet, ${options})`,
  );
}
console.log(`${Object.keys(files).length} files in ${folder}`);
