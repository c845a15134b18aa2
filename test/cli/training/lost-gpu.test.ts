import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { LostTrainingError } from '../../../api/training/lost-training.ts';
import { saveLostModel } from '../../../cli/sessions/run-training.ts';
import { ALS, DeviceLostError, Model, Session } from '../../../index.ts';
import { randomRatings, ratingBatches } from '../../support/ratings.ts';
import { temporaryFolder } from '../run-cli.ts';

const folder = temporaryFolder();

describe('a GPU that is lost while training', () => {
  it('leaves its last model in the folder, and the error names it', async () => {
    await using session = await Session.create({ device: 'cpu', workers: 1 });
    const trained = await new ALS({ rank: 2, maxIter: 1 }).fit(
      session.from(ratingBatches(randomRatings(61, 20, 20, 200))),
    );
    const directory = join(folder, 'left');
    const lost = new LostTrainingError(new DeviceLostError('the GPU was lost', { phase: 'gpu' }), trained, 7);
    const saving = saveLostModel(Promise.reject(lost), directory, {
      overwrite: false,
      signal: new AbortController().signal,
    });
    await expect(saving).rejects.toThrow(
      `train: the GPU was lost; the model of iteration 7 is saved in ${directory}. Train again, or use --device cpu`,
    );
    await expect(saving).rejects.toMatchObject({ exitCode: 5 });
    expect((await Model.load(session, directory)).userCount).toBe(trained.userCount);
    // With checkpoints, the run that continues writes the model.
    const kept = join(folder, 'kept');
    const going = saveLostModel(
      Promise.reject(
        new LostTrainingError(
          new DeviceLostError('the GPU was lost', { phase: 'gpu' }),
          trained,
          7,
          'c/checkpoint-00000007',
        ),
      ),
      kept,
      { overwrite: false, signal: new AbortController().signal },
    );
    await expect(going).rejects.toThrow(
      'train: the GPU was lost; the last checkpoint is c/checkpoint-00000007. Continue from it with --resume, also with --device cpu',
    );
    await expect(going).rejects.toMatchObject({ exitCode: 5 });
    expect(existsSync(kept)).toBe(false);
  });
});
