/** Milliseconds until the first batch of a filter over a folder of Parquet files, as JSON. */
const started = performance.now();
const { col, Session } = await import('../../dist/programs/index.js' as '../../index.ts');
const session = await Session.create({ device: 'cpu', workers: 2 });
const opened = performance.now();
const stream = await session.read.parquet(process.argv[2]).filter(col('rating').ge(4)).stream();
for await (const batch of stream) {
  const now = performance.now();
  console.log(
    JSON.stringify({
      'milliseconds from the open session': now - opened,
      'milliseconds from the start of the program': now - started,
      rows: batch.numRows,
    }),
  );
  break;
}
await session.close();
