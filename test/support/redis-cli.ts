/** Real `redis-cli`. */
export const redisCli = 'redis-cli';
