/**
 * Train on a frame of Polars, and take the recommendations as another: both sides are Arrow. (It needs
 * nodejs-polars.)
 *
 *   npm run build && npx node examples/13-polars-frames.ts
 */
import { join } from 'node:path';
import { RecordBatchStreamWriter, tableFromIPC } from 'factorflow/arrow';
import { ALS, Session } from 'factorflow';
import pl from 'nodejs-polars';

const data = join(import.meta.dirname, 'data/movietweetings-100k');
const all = pl.readParquet(join(data, 'ratings.parquet'));
const active = all
  .groupBy('user')
  .agg(pl.col('item').count().alias('count'))
  .filter(pl.col('count').gtEq(10));
const frame = all.join(active, { on: 'user' }).select('user', 'item', pl.col('rating').cast(pl.Float32));
console.log(`${frame.height} ratings of ${active.height} users`);

const session = await Session.create();
const ratings = session.from(tableFromIPC(frame.writeIPCStream()).batches);
const model = await new ALS({ rank: 16, seed: 1 }).fit(ratings);

const best = model.recommendForAllUsers(3, { exclude: ratings });
const writer = await RecordBatchStreamWriter.writeAll(best);
const lists = pl.readIPCStream(Buffer.from(await writer.toUint8Array()));
const favourites = lists
  .groupBy('item')
  .agg(
    pl.col('user').count().alias('users'),
    pl.col('prediction').cast(pl.Float64).mean().round(1).alias('prediction'),
  )
  .sort(['users', 'item'], true)
  .head(3);
for (const { item, users, prediction } of favourites.toRecords())
  console.log(`film ${item}: for ${users} users, ${prediction} on average`);
await session.close();
