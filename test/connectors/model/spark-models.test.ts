import { Field, Float32, Int32, List, makeData, makeVector, RecordBatch, Schema, Struct } from 'apache-arrow';
import { mkdirSync, writeFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { loadModel } from '../../../connectors/model/model-store.ts';
import { parquetBackend } from '../../../connectors/parquet/backends.ts';
import { path } from './stored-models.ts';

describe("a model of Spark's", () => {
  async function sparkModel(
    name: string,
    element: string,
    codec: 'gzip' | 'snappy',
    ids: number[][],
  ): Promise<string> {
    for (const side of ['userFactors', 'itemFactors']) {
      mkdirSync(path(`${name}/${side}`), { recursive: true });
      writeFileSync(path(`${name}/${side}/_SUCCESS`), '');
      const list = new List(new Field(element, new Float32(), false));
      const schema = new Schema([new Field('id', new Int32(), false), new Field('features', list, true)]);
      for (const [part, some] of ids.entries()) {
        const child = makeVector(Float32Array.from(some.flatMap((id) => [id, id + 0.5]))).data[0];
        const features = makeData({
          type: list,
          length: some.length,
          nullCount: 0,
          valueOffsets: Int32Array.from({ length: some.length + 1 }, (_, i) => i * 2),
          child,
        });
        const children = [makeVector(Int32Array.from(some)).data[0], features];
        const file = `part-0000${part}-d3bd-c000.${codec}.parquet`;
        const writer = await (
          await parquetBackend()
        ).create(path(`${name}/${side}/${file}`), schema, { codec, rowGroupSize: 100 });
        await writer.write(
          new RecordBatch(
            schema,
            makeData({ type: new Struct(schema.fields), length: some.length, nullCount: 0, children }),
          ),
        );
        await writer.close();
        writeFileSync(path(`${name}/${side}/.${file}.crc`), 'crc');
      }
    }
    mkdirSync(path(`${name}/metadata`));
    writeFileSync(path(`${name}/metadata/_SUCCESS`), '');
    writeFileSync(path(`${name}/metadata/.part-00000.crc`), 'crc');
    writeFileSync(path(`${name}/metadata/part-00000`), '');
    writeFileSync(
      path(`${name}/metadata/part-00001`),
      '{"class":"org.apache.spark.ml.recommendation.ALSModel","timestamp":1512000000000,"sparkVersion":"3.5.1","uid":"als_1","paramMap":{"userCol":"u"},"defaultParamMap":{"blockSize":4096,"coldStartStrategy":"NaN"},"rank":2}\n',
    );
    return path(name);
  }

  test.each([
    ['element', 'snappy'],
    ['array', 'gzip'],
  ] as const)('with lists of "%s", codec %s, unsorted parts and no key of ours', async (element, codec) => {
    const loaded = await loadModel(
      await sparkModel(`spark-${element}`, element, codec, [[4, 2], [], [9, 1, 3]]),
    );
    expect([...loaded.userIds]).toEqual([1, 2, 3, 4, 9]);
    expect([...loaded.userFactors]).toEqual([1, 1.5, 2, 2.5, 3, 3.5, 4, 4.5, 9, 9.5]);
    expect(loaded).toMatchObject({
      rank: 2,
      columns: { user: 'u', item: 'item', rating: 'rating', prediction: 'prediction' },
      coldStartStrategy: 'nan',
      factorflow: {},
    });
  });

  test('with an id twice is refused', async () => {
    await expect(
      sparkModel('spark-twice', 'element', 'snappy', [[4, 2], [2]]).then(loadModel),
    ).rejects.toThrow(/the id 2 occurs twice .*userFactors/);
  });
});
