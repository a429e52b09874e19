"""The flush: carries counts from Redis to SQL, and back where Redis fell behind."""
