import { join } from 'node:path';
import type { DeviceRequest } from '../../api/devices/device-request.ts';
import { ALS, Session } from '../../index.ts';
import type { Case } from '../harness.ts';
import { generated } from '../processes.ts';

const recommend: Case = {
  about:
    'Ten items for each user, without the training ratings, as Arrow batches: at rank 64, with and ' +
    'without biases. Users/s from the call to the last batch, and from the first batch on, without ' +
    'reading and sorting the exclusions. FOLDER is of `factorflow generate`. implicit 0.7 had 16,400 ' +
    'users/s on a similar machine.',
  words: '[FOLDER]',
  options: { device: 'cpu', workers: '2' },
  columns: { seconds: 's', all: 'users/s', search: 'users/s' },
  async *rows(given) {
    const { device, workers } = given.options;
    const folder = generated('movielens20m', given);
    await using session = await Session.create({
      device: device as DeviceRequest,
      ...(device === 'cpu' && { workers: Number(workers) }),
    });
    const train = session.read.parquet(join(folder, 'train'));
    for (const biases of [false, true]) {
      const als = new ALS({ rank: 64, maxIter: 4, regParam: 0.05, seed: 1, biases });
      const model = await als.fit(train);
      const run = async () => {
        const start = performance.now();
        let first = 0;
        for await (const batch of model.recommendForAllUsers(10, { exclude: train }))
          if (first === 0 && batch.numRows > 0) first = performance.now();
        const [seconds, search] = [start, first].map((from) => (performance.now() - from) / 1000);
        return { seconds, all: model.userCount / seconds, search: model.userCount / search };
      };
      yield { name: biases ? 'biases' : 'no biases', engines: { [device]: run } };
    }
  },
};
export default recommend;
