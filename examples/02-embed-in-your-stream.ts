/**
 * Training as one stage of your own stream: record batches come from your generator, predictions go to your
 * consumer. The generator may be any AsyncIterable<RecordBatch>, e.g. an Arrow IPC reader or a database
 * cursor.
 *
 *   npm run build && npx node examples/02-embed-in-your-stream.ts
 */
import { type RecordBatch, tableFromArrays } from 'factorflow/arrow';
import { ALS, Session } from 'factorflow';

/** Your source: users like the items whose number has the parity of their own. */
async function* ratings(): AsyncGenerator<RecordBatch> {
  for (let user = 0; user < 40; user++) {
    const items = Int32Array.from({ length: 30 }, (_, i) => (i * 7 + user * 3) % 50);
    const table = tableFromArrays({
      user: new Int32Array(30).fill(user),
      item: items,
      rating: Float32Array.from(items, (item) => (item % 2 === user % 2 ? 5 : 1)),
    });
    yield* table.batches;
  }
}

/** Pairs to score, batch by batch. */
async function* requests(): AsyncGenerator<RecordBatch> {
  for (let user = 0; user < 4; user++)
    yield* tableFromArrays({ user: new Int32Array(2).fill(user), item: Int32Array.of(48, 49) }).batches;
}

const session = await Session.create({ workers: 2 });
const model = await new ALS({ rank: 2, seed: 1 }).fit(session.from(ratings()));

/** Your consumer. It pulls, so the stages before it do not run ahead. */
for await (const batch of model.predict(session.from(requests()))) {
  for (const row of batch) console.log(`user ${row.user} item ${row.item} -> ${row.prediction.toFixed(2)}`);
}
await session.close();
