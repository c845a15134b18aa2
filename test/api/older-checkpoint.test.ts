/** A checkpoint whose plan was written by an earlier release, in a version that this release does not run. */
import { createHash } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { ALS, type Model, Session } from '../../index.ts';
import { PLAN_VERSION } from '../../engine/plan/physical-plan.ts';
import { plantedRatings } from '../support/planted.ts';
import { ratingBatches } from '../support/ratings.ts';

const session = await Session.create({ workers: 1, device: 'cpu' });
const checkpointDir = mkdtempSync(join(tmpdir(), 'factorflow-older-'));
afterAll(async () => {
  await session.close();
  rmSync(checkpointDir, { recursive: true });
});

/** Changes the plan of a checkpoint to the previous version, and corrects the checksum of its file. */
function age(checkpoint: string): void {
  const [state, sums] = ['checkpoint.json', 'SHA256SUMS'].map((name) => join(checkpoint, name));
  const before = readFileSync(state, 'utf8');
  const after = before.replace(`"planVersion":${PLAN_VERSION}`, `"planVersion":${PLAN_VERSION - 1}`);
  expect(after).not.toBe(before);
  const sumOf = (text: string) => createHash('sha256').update(text).digest('hex');
  writeFileSync(state, after);
  writeFileSync(sums, readFileSync(sums, 'utf8').replace(sumOf(before), sumOf(after)));
}

it('a run goes on from it with a plan made anew, and says so', async () => {
  const trainer = new ALS({ rank: 4, maxIter: 6, seed: 3 });
  const ratings = session.from(ratingBatches(plantedRatings(7, 60, 40, 1500)));
  const controller = new AbortController();
  const stopped = trainer.fit(ratings, {
    checkpointDir,
    checkpointInterval: 2,
    signal: controller.signal,
    onEvent: (event) => void (event.type === 'iteration' && event.iteration === 4 && controller.abort()),
  });
  await expect(stopped).rejects.toThrow('continue from it');
  const checkpoint = join(checkpointDir, 'checkpoint-00000002');
  age(checkpoint);
  const notes: string[] = [];
  const got = await trainer.fit(ratings, {
    checkpointDir,
    resume: true,
    onEvent: (event) => void (event.type === 'note' && notes.push(event.text)),
  });
  const refused = `this plan has version ${PLAN_VERSION - 1}, and this release runs plans of version ${PLAN_VERSION}`;
  expect(got.training?.resumedFrom).toEqual({
    iteration: 2,
    checkpoint,
    planChanges: [expect.stringContaining(refused)],
  });
  expect(notes).toContainEqual(expect.stringContaining(`the plan has changed: ${refused}`));
  const factorsOf = ({ userFactors }: Model) => userFactors.data.children[1].children[0].values;
  expect(factorsOf(got)).toEqual(factorsOf(await trainer.fit(ratings)));
});
