import { UsageError } from '../../engine/errors.ts';

/** Parts of an address after its scheme: "bucket/folder/file.csv". */
interface Address {
  readonly bucket: string;
  readonly key: string;
}

interface Store {
  readonly name: string;
  /** Other ways to read the file. */
  advice(address: Address): string;
}

const download = (command: string) => `or download the file first: ${command}`;

const s3: Store = {
  name: 'Amazon S3',
  advice: ({ bucket, key }) =>
    `Give an https:// address, which aws s3 presign s3://${bucket}/${key} makes, ${download(`aws s3 cp s3://${bucket}/${key} .`)}`,
};

const cloudStorage: Store = {
  name: 'Google Cloud Storage',
  advice: ({ bucket, key }) =>
    `Give an https:// address: https://storage.googleapis.com/${bucket}/${key} where it is public, else a signed one, ${download(`gcloud storage cp gs://${bucket}/${key} .`)}`,
};

const azure: Store = {
  name: 'Azure Blob Storage',
  advice: () =>
    `Give the https:// address of the blob, with a SAS token where it is not public, ${download('azcopy copy ADDRESS .')}`,
};

const huggingFace: Store = {
  name: 'the Hugging Face Hub',
  advice: (address) => `Give its https:// address, ${hubAddress(address)}, ${download('hf download')}`,
};

const stores: Readonly<Record<string, Store>> = {
  s3,
  s3a: s3,
  s3n: s3,
  gs: cloudStorage,
  gcs: cloudStorage,
  az: azure,
  azure,
  abfs: azure,
  abfss: azure,
  wasb: azure,
  wasbs: azure,
  hf: huggingFace,
};

/**
 * The https address of a file for "hf://datasets/user/name@revision/path". Addresses of models have no first
 * word like `datasets`.
 */
function hubAddress({ bucket, key }: Address): string {
  const [kind, rest] = ['datasets', 'spaces'].includes(bucket)
    ? [`${bucket}/`, key]
    : ['', `${bucket}/${key}`];
  const [user = 'USER', named = 'NAME', ...path] = rest.split('/').filter((part) => part !== '');
  const [name, revision = 'main'] = named.split('@');
  return `https://huggingface.co/${kind}${user}/${name}/resolve/${revision}/${path.length === 0 ? 'FILE' : path.join('/')}`;
}

/**
 * Throws UsageError for an address such as s3:// or hf://, which is neither a path nor http(s). The error
 * recommends other ways to read the file. `phase`: see ErrorDetails.
 */
export function refuseAddress(path: string, phase: string): void {
  // Removes possible secrets: the query, and user and password.
  const file = path.replace(/[?#].*$/s, '').replace(/^([^/]*\/\/)[^/@]*:[^/@]*@/, '$1');
  const [, scheme = '', bucket = '', key = ''] =
    /^([a-z][a-z0-9+.-]+):\/\/([^/]*)\/?(.*)$/is.exec(file) ?? [];
  const lower = scheme.toLowerCase();
  if (lower === '' || lower === 'http' || lower === 'https') return;
  if (lower === 'file')
    throw new UsageError('paths are given without file://', {
      phase,
      file,
      advice: `Write ${bucket === '' ? `/${key}` : `/${bucket}/${key}`}`,
    });
  const store = stores[lower];
  const name = store?.name ?? `${lower}://`;
  if (phase === 'write')
    throw new UsageError(`FactorFlow has no client that writes to ${name}`, {
      phase,
      file,
      advice: 'Name a file or folder, and copy it there afterwards',
    });
  const usual = 'Give an http:// or https:// address, or download the file first';
  throw new UsageError(`FactorFlow has no client that reads from ${name}`, {
    phase,
    file,
    advice: store?.advice({ bucket, key }) ?? usual,
  });
}
