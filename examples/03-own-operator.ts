/**
 * Your own operator: a stream of record batches in, a stream of record batches out. This one brings ratings
 * of any scale to 0..1, so that errors of different data sets can be compared.
 *
 *   npm run build && npx node examples/03-own-operator.ts
 */
import { join } from 'node:path';
import { Field, Float32, makeData, RecordBatch, Schema, Struct, type TypeMap } from 'factorflow/arrow';
import { ALS, type BatchStream, batchStream, DataError, type Operator, Session } from 'factorflow';

/** Maps rating to (rating - from) / (to - from). The other columns pass unchanged. */
class ScaleRatings implements Operator {
  readonly name = 'scale-ratings';
  readonly #from: number;
  readonly #to: number;

  constructor(from: number, to: number) {
    this.#from = from;
    this.#to = to;
  }

  /** The parameters that a plan prints beside the name. */
  describe() {
    return { from: this.#from, to: this.#to };
  }

  /** The output columns for these input columns. Reads no rows. */
  outputSchema(input: Schema): Schema {
    if (!input.fields.some((field) => field.name === 'rating'))
      throw new DataError('there is no column "rating"', { phase: 'read' });
    return new Schema(
      input.fields.map((field) =>
        field.name === 'rating' ? new Field('rating', new Float32(), field.nullable) : field,
      ),
    );
  }

  /**
   * The input columns that the wanted ones need, so that a source can leave out the rest; undefined means
   * all.
   */
  requiredColumns(wanted?: readonly string[]): readonly string[] | undefined {
    return wanted && [...new Set([...wanted, 'rating'])];
  }

  /** State belongs to the stream: one operator can run many times, also at once. */
  execute(input: BatchStream): BatchStream {
    const schema = this.outputSchema(input.schema);
    return batchStream(schema, this.#scale(input, schema));
  }

  async *#scale(input: BatchStream, schema: Schema) {
    const at = schema.fields.findIndex((field) => field.name === 'rating');
    for await (const { data, numRows } of input) {
      const { values, nullBitmap, nullCount } = data.children[at];
      const scaled = Float32Array.from(
        values.subarray(0, numRows) as Float32Array,
        (rating) => (rating - this.#from) / (this.#to - this.#from),
      );
      const rating = makeData({ type: new Float32(), length: numRows, nullBitmap, nullCount, data: scaled });
      yield new RecordBatch(
        schema,
        makeData({
          type: new Struct<TypeMap>(schema.fields),
          length: numRows,
          nullCount: 0,
          children: data.children.with(at, rating),
        }),
      );
    }
  }
}

const session = await Session.create();
const ratings = session.read.parquet(join(import.meta.dirname, 'data/movietweetings-100k/ratings.parquet'));

// MovieTweetings has ratings from 0 to 10. Later operators, splits and training take the result like any data
// set.
const [train, test] = ratings.pipe(new ScaleRatings(0, 10)).randomSplit([0.9, 0.1], { seed: 42 });
// λ goes with the scale of the ratings: at a tenth of the scale take a tenth of λ.
const als = new ALS({ rank: 16, seed: 1 });
console.log(
  String(await als.plan(train))
    .split('\n')
    .find((line) => line.includes('scale-ratings')),
);
const model = await als.fit(train);
const { rmse } = await model.evaluate(test);
console.log(`RMSE ${rmse.toFixed(4)} on a scale of 0 to 1`);
await session.close();
