def contenders(engine):
    return []
